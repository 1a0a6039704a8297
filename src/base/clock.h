/*
 * Time. usec: microseconds, unsigned 64 bit. Real time counts from the Unix epoch, monotonic time
 * from boot. Durations as people write them.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/err.h"

#define USEC_PER_SEC UINT64_C(1000000)
#define USEC_PER_MSEC UINT64_C(1000)

uint64_t clock_real_usec(void);
uint64_t clock_mono_usec(void);

/* "2026-11-30T14:37:48.123456Z" (RFC 3339, always UTC, always microseconds). */
#define CLOCK_TEXT_MAX 32
char *clock_format(uint64_t real_usec, char text[CLOCK_TEXT_MAX]);
int clock_parse(const char *text, uint64_t *ret_usec, struct err *err);

/*
 * A duration: "90s", "30m", "8h", "2d", "1h30m", "500ms", and Slurm's "MM", "MM:SS", "HH:MM:SS",
 * "D-HH", "D-HH:MM", "D-HH:MM:SS" (sbatch(1) --time; a bare number is minutes there and here).
 * -EINVAL with a text that shows the forms; at most 10 years.
 */
int duration_parse(const char *text, uint64_t *ret_usec, struct err *err);
/* "2d 3h", "1h 30m", "45s", "120ms": two units at most. */
#define DURATION_TEXT_MAX 32
char *duration_format(uint64_t usec, char text[DURATION_TEXT_MAX]);

#endif
