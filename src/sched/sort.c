/* Radix sort by bytes, the last one first. Bytes that all keys have in common cost nothing. */
#include "sched/sort.h"

#define BYTES 8

static bool is_sorted(const struct sort_item *items, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (items[i].key < items[i - 1].key)
            return false;
    return true;
}

/* By one byte: where each value of it begins, then every record to its place. */
static void move_by(const struct sort_item *from, struct sort_item *to, uint32_t count,
    const uint32_t of_value[256], unsigned byte)
{
    uint32_t at[256], sum = 0;

    for (unsigned v = 0; v < 256; v++) {
        at[v] = sum;
        sum += of_value[v];
    }
    for (uint32_t i = 0; i < count; i++)
        to[at[from[i].key >> (8 * byte) & 255]++] = from[i];
}

void sort_items(struct sort_item *items, uint32_t count)
{
    _cleanup_free_ struct sort_item *other = NULL;
    struct sort_item *from = items, *to;
    uint32_t of_value[BYTES][256] = {0};

    if (is_sorted(items, count))
        return;
    to = other = xnew_array(struct sort_item, count);
    for (uint32_t i = 0; i < count; i++)
        for (unsigned byte = 0; byte < BYTES; byte++)
            of_value[byte][items[i].key >> (8 * byte) & 255]++;
    for (unsigned byte = 0; byte < BYTES; byte++) {
        struct sort_item *moved = to;

        if (of_value[byte][items[0].key >> (8 * byte) & 255] == count)
            continue;
        move_by(from, to, count, of_value[byte], byte);
        to = from;
        from = moved;
    }
    if (from != items)
        memcpy(items, from, count * sizeof(*items));
}
