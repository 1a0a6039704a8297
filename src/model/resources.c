/*
 * What a container asks for and a node has. Pure arithmetic and its text: owns nothing, and nothing
 * here wraps around.
 */
#include "model/resources.h"

#include "base/str.h"

#define CPUS_MILLI_MIN 10
#define CPUS_MILLI_MAX 4096000

bool resources_fit(const struct resources *a, const struct resources *b)
{
    return a->cpu_milli <= b->cpu_milli && a->gpus <= b->gpus && a->mem <= b->mem;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    return a ? b / a : UINT32_MAX;
}

uint32_t resources_times(const struct resources *a, const struct resources *b)
{
    uint64_t n = UINT32_MAX;

    n = MIN_OF(n, times(a->cpu_milli, b->cpu_milli));
    n = MIN_OF(n, times(a->gpus, b->gpus));
    n = MIN_OF(n, times(a->mem, b->mem));
    return (uint32_t)n;
}

void resources_add(struct resources *to, const struct resources *what)
{
    if (__builtin_add_overflow(to->cpu_milli, what->cpu_milli, &to->cpu_milli))
        to->cpu_milli = UINT32_MAX;
    if (__builtin_add_overflow(to->gpus, what->gpus, &to->gpus))
        to->gpus = UINT32_MAX;
    if (__builtin_add_overflow(to->mem, what->mem, &to->mem))
        to->mem = UINT64_MAX;
}

void resources_sub(struct resources *from, const struct resources *what)
{
    from->cpu_milli -= MIN_OF(from->cpu_milli, what->cpu_milli);
    from->gpus -= MIN_OF(from->gpus, what->gpus);
    from->mem -= MIN_OF(from->mem, what->mem);
}

int resources_scale(const struct resources *each, uint32_t n, struct resources *ret)
{
    struct resources r;

    if (__builtin_mul_overflow(each->cpu_milli, n, &r.cpu_milli) ||
        __builtin_mul_overflow(each->gpus, n, &r.gpus) ||
        __builtin_mul_overflow(each->mem, n, &r.mem))
        return -EOVERFLOW;
    *ret = r;
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "12", "0.5", ".5", "1.250" in thousandths; false for any other form. */
static bool decimal_milli(const char *s, uint64_t *ret)
{
    uint64_t n = 0, unit = 1000;
    bool any = false, point = false;

    for (; *s; s++) {
        if (*s == '.' && !point) {
            point = true;
            continue;
        }
        if (!is_digit(*s) || (point && unit == 1))
            return false;
        any = true;
        unit /= point ? 10 : 1;
        n = point ? n + (uint64_t)(*s - '0') * unit : n * 10 + (uint64_t)(*s - '0') * 1000;
        if (n > CPUS_MILLI_MAX)
            return false;
    }
    *ret = n;
    return any;
}

/* "1500m" */
static bool suffix_milli(const char *s, uint64_t *ret)
{
    char digits[8];
    size_t n = strlen(s);

    if (n < 2 || n - 1 >= sizeof(digits) || s[n - 1] != 'm')
        return false;
    memcpy(digits, s, n - 1);
    digits[n - 1] = '\0';
    return str_to_u64(digits, CPUS_MILLI_MAX, ret) == 0;
}

int cpus_parse(const char *text, uint32_t *ret_milli, struct err *err)
{
    uint64_t milli;

    if (!text || (!suffix_milli(text, &milli) && !decimal_milli(text, &milli)) ||
        milli < CPUS_MILLI_MIN || milli > CPUS_MILLI_MAX)
        return err_set(
            err, -EINVAL, "CPUs must be a number from 0.01 to 4096, like '2', '0.5' or '1500m'");
    *ret_milli = (uint32_t)milli;
    return 0;
}

char *cpus_format(uint32_t milli, char text[CPUS_TEXT_MAX])
{
    size_t n;

    snprintf(text, CPUS_TEXT_MAX, "%u.%03u", milli / 1000, milli % 1000);
    for (n = strlen(text); text[n - 1] == '0'; n--)
        text[n - 1] = '\0';
    if (text[n - 1] == '.')
        text[n - 1] = '\0';
    return text;
}

char *resources_format(const struct resources *r, char text[RESOURCES_TEXT_MAX])
{
    char cpus[CPUS_TEXT_MAX], mem[SIZE_TEXT_MAX];
    size_t n;

    snprintf(text, RESOURCES_TEXT_MAX, "%s CPU%s, %s", cpus_format(r->cpu_milli, cpus),
        r->cpu_milli == 1000 ? "" : "s", size_format(r->mem, mem));
    n = strlen(text);
    if (r->gpus > 0)
        snprintf(text + n, RESOURCES_TEXT_MAX - n, ", %u GPU%s", r->gpus, r->gpus == 1 ? "" : "s");
    return text;
}
