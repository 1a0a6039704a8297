/* Owns nothing but the list; pure. */
#include "agent/net/cidr.h"

#include <arpa/inet.h>

#include "base/str.h"

void cidr_list_done(struct cidr_list *l)
{
    free(l->ranges);
    *l = (struct cidr_list){0};
}

void cidr_list_add(struct cidr_list *l, uint32_t lo, uint32_t hi)
{
    assert(lo <= hi);
    l->ranges = xgrow(l->ranges, &l->cap, l->count + 1, sizeof(*l->ranges));
    l->ranges[l->count++] = (struct cidr_range){lo, hi};
}

static int invalid(const char *text, struct err *err)
{
    _cleanup_free_ char *shown = str_escape(text, strlen(text), 60);

    return err_set(err, -EINVAL, "'%s' is not a network such as 10.9.0.0/24", shown);
}

int cidr_list_add_text(struct cidr_list *l, const char *text, struct err *err)
{
    const char *slash = strchr(text, '/');
    _cleanup_free_ char *addr = xstrndup(text, slash ? (size_t)(slash - text) : strlen(text));
    bool six = strchr(addr, ':');
    uint64_t prefix = six ? 128 : 32;
    uint8_t bytes[16];
    uint32_t ip, host;

    if (inet_pton(six ? AF_INET6 : AF_INET, addr, bytes) != 1)
        return invalid(text, err);
    if (slash && str_to_u64(slash + 1, prefix, &prefix) < 0)
        return invalid(text, err);
    if (six)
        return 0;
    memcpy(&ip, bytes, sizeof(ip));
    host = prefix == 0 ? UINT32_MAX : (uint32_t)((UINT64_C(1) << (32 - prefix)) - 1);
    cidr_list_add(l, ntohl(ip) & ~host, ntohl(ip) | host);
    return 0;
}

static int by_lo(const void *a, const void *b)
{
    const struct cidr_range *x = a, *y = b;

    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

void cidr_list_normalise(struct cidr_list *l)
{
    size_t n = 0;

    if (l->count == 0)
        return;
    qsort(l->ranges, l->count, sizeof(*l->ranges), by_lo);
    for (size_t i = 1; i < l->count; i++) {
        struct cidr_range *last = &l->ranges[n], next = l->ranges[i];

        if (next.lo <= last->hi || next.lo - 1 == last->hi)
            last->hi = MAX_OF(last->hi, next.hi);
        else
            l->ranges[++n] = next;
    }
    l->count = n + 1;
}

static int print_ip(uint32_t ip, struct buf *out)
{
    return buf_printf(out, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
}

int cidr_list_print(const struct cidr_list *l, struct buf *out)
{
    int r = 0;

    for (size_t i = 0; i < l->count && r == 0; i++) {
        const struct cidr_range *c = &l->ranges[i];

        if (i > 0)
            r = buf_puts(out, ", ");
        if (r == 0)
            r = print_ip(c->lo, out);
        if (r == 0 && c->hi != c->lo) {
            r = buf_puts(out, "-");
            if (r == 0)
                r = print_ip(c->hi, out);
        }
    }
    return r;
}
