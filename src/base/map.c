/*
 * Hash map from string to pointer. Entries stand in an array in order of insertion; an index with
 * linear probing points into it. A removed entry stays as a hole (key NULL) that the index still
 * points to, so that probing goes on behind it and a loop over the entries is not disturbed; holes
 * go when an insertion finds more than half of them or the index full.
 * Keys come from users: the hash is SipHash-1-3 with a key drawn once per process.
 */
#include "base/map.h"

#include <pthread.h>
#include <sys/random.h>

static uint64_t sip_key[2];
static pthread_once_t sip_once = PTHREAD_ONCE_INIT;

static void sip_key_draw(void)
{
    if (getrandom(sip_key, sizeof(sip_key), 0) != (ssize_t)sizeof(sip_key))
        abort();
}

static uint64_t rotl(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] = rotl(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] = rotl(v[2], 32);
}

/* Aumasson and Bernstein, "SipHash: a fast short-input PRF", with one and three rounds. */
static uint64_t hash_key(const char *s)
{
    size_t len = strlen(s), left = len;
    uint64_t v[4], word;

    pthread_once(&sip_once, sip_key_draw);
    v[0] = sip_key[0] ^ UINT64_C(0x736f6d6570736575);
    v[1] = sip_key[1] ^ UINT64_C(0x646f72616e646f6d);
    v[2] = sip_key[0] ^ UINT64_C(0x6c7967656e657261);
    v[3] = sip_key[1] ^ UINT64_C(0x7465646279746573);
    for (; left >= 8; left -= 8, s += 8) {
        memcpy(&word, s, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = 0;
    memcpy(&word, s, left);
    word |= (uint64_t)len << 56;
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void map_init(struct map *m)
{
    *m = (struct map){0};
}

void map_done(struct map *m, void (*free_value)(void *))
{
    map_for_each (e, m) {
        free(e->key);
        if (free_value)
            free_value(e->value);
    }
    free(m->entries);
    free(m->index);
    map_init(m);
}

static struct map_entry *find(const struct map *m, const char *key, uint64_t hash)
{
    size_t mask = m->index_size - 1;

    if (m->index_size == 0)
        return NULL;
    for (size_t at = hash & mask; m->index[at]; at = (at + 1) & mask) {
        struct map_entry *e = &m->entries[m->index[at] - 1];

        if (e->hash == hash && e->key && strcmp(e->key, key) == 0)
            return e;
    }
    return NULL;
}

static void index_add(struct map *m, size_t entry)
{
    size_t mask = m->index_size - 1;
    size_t at = m->entries[entry].hash & mask;

    while (m->index[at])
        at = (at + 1) & mask;
    m->index[at] = (uint32_t)(entry + 1);
}

/* Close the holes and make the index anew, at most half full with one more entry. */
static void rebuild(struct map *m)
{
    size_t to = 0;

    for (size_t from = 0; from < m->used; from++)
        if (m->entries[from].key)
            m->entries[to++] = m->entries[from];
    m->used = to;
    assert(m->used < UINT32_MAX / 4);
    for (m->index_size = 8; m->index_size < 2 * (m->used + 1);)
        m->index_size *= 2;
    free(m->index);
    m->index = xnew_array(uint32_t, m->index_size);
    for (size_t i = 0; i < m->used; i++)
        index_add(m, i);
}

static bool needs_rebuild(const struct map *m)
{
    bool full = (m->used + 1) * 4 > m->index_size * 3;
    bool holes = m->used >= 8 && m->used - m->count > m->used / 2;

    return full || holes;
}

void *map_get(const struct map *m, const char *key)
{
    struct map_entry *e;

    if (m->count == 0)
        return NULL;
    e = find(m, key, hash_key(key));
    return e ? e->value : NULL;
}

void *map_set(struct map *m, const char *key, void *value)
{
    uint64_t hash = hash_key(key);
    struct map_entry *e = find(m, key, hash);

    assert(value);
    if (e) {
        void *old = e->value;

        e->value = value;
        return old;
    }
    if (needs_rebuild(m))
        rebuild(m);
    m->entries = xgrow(m->entries, &m->cap, m->used + 1, sizeof(*m->entries));
    m->entries[m->used] = (struct map_entry){xstrdup(key), value, hash};
    index_add(m, m->used++);
    m->count++;
    return NULL;
}

void *map_remove(struct map *m, const char *key)
{
    struct map_entry *e = find(m, key, hash_key(key));
    void *value;

    if (!e)
        return NULL;
    /* The key last: the caller's may be this very string. */
    value = TAKE_PTR(e->value);
    free(TAKE_PTR(e->key));
    m->count--;
    return value;
}

void map_copy(struct map *to, const struct map *from)
{
    map_init(to);
    map_for_each (e, from)
        map_set(to, e->key, e->value);
}

size_t map_count(const struct map *m)
{
    return m->count;
}
