/* Values as public documents show them: what is not there is null, times are RFC 3339. */
#include "wire/public.h"

#include "base/clock.h"

void public_set_time(json_t *obj, const char *key, uint64_t real_usec)
{
    char text[CLOCK_TEXT_MAX];

    json_set_str(obj, key, real_usec ? clock_format(real_usec, text) : NULL);
}

void public_set_text(json_t *obj, const char *key, const char *text)
{
    json_set_str(obj, key, text && text[0] ? text : NULL);
}

void public_set_limit(json_t *obj, const char *key, uint64_t n)
{
    if (n)
        json_set_u64(obj, key, n);
    else
        json_object_set_new(obj, key, json_null());
}

void public_set_cpus(json_t *obj, const char *key, uint64_t milli)
{
    if (milli % 1000 == 0)
        json_set_u64(obj, key, milli / 1000);
    else
        json_object_set_new(obj, key, json_real((double)milli / 1000));
}
