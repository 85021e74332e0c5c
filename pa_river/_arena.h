/* The arena: an open-addressed map from the bytes of a feature's name to its weight, without one Python object a name.

   entries  {begin, weight}, in order of arrival; entries[count].begin closes the last name
   table    0, or the entry's number + 1 in the low bits and the name's hash in those above; linear probing, at most two
            thirds full, a power of two long
   blob     the bytes of all names, one after the other

   A table of 2^k places holds fewer than 2^k entries, which leaves 32 - k bits of each place for the hash: a probe passes
   nearly every other name without a look at its entry, which in a large model costs a cache miss. The hash stands nowhere
   else; a table that grows takes it from the names again.

   A function that cannot get memory returns -1 and has changed nothing. No Python is called here. */
#ifndef PA_RIVER_ARENA_H
#define PA_RIVER_ARENA_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_MSC_VER)
#include <intrin.h>
#endif

#pragma pack(push, 4) /* 12 bytes, not 16 */
typedef struct { uint32_t begin; double weight; } ArenaEntry;
#pragma pack(pop)

typedef struct {
    ArenaEntry *entries;
    uint32_t *table;
    uint8_t *blob;
    uint32_t count, room, mask;
    size_t used, size;
} Arena;

/* Slots are int32 and offsets uint32: beyond these a model of one process is no longer the right tool. */
#define ARENA_MOST_NAMES ((size_t)1 << 30)
#define ARENA_MOST_BYTES ((size_t)UINT32_MAX)

/* What an empty arena probes, so that a look-up has no special case. Its mask is 0, by which it is known: every compiled
   module has such a table of its own. */
static uint32_t arena_no_table[1] = {0};

#if defined(__GNUC__)
#define ARENA_PREFETCH(at) __builtin_prefetch(at)
#else
#define ARENA_PREFETCH(at) ((void)0)
#endif

static inline uint64_t arena_mix(uint64_t a, uint64_t b) {
#if defined(_MSC_VER) && defined(_M_X64)
    uint64_t high, low = _umul128(a, b, &high);
    return low ^ high;
#elif defined(_MSC_VER)
    return (a * b) ^ __umulh(a, b);
#else
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#endif
}

static inline uint64_t arena_word(const uint8_t *text) {
    uint64_t word;
    memcpy(&word, text, 8);
    return word;
}

static inline uint64_t arena_half(const uint8_t *text) {
    uint32_t half;
    memcpy(&half, text, 4);
    return half;
}

/* In the manner of wyhash: 16 bytes a multiplication, the last 8 (overlapping) at the end. Both factors are seeded, and
   the seed differs between processes (see _names.pyx), so nobody can choose names that collide; no result depends on it. */
static inline uint32_t arena_hash(const uint8_t *text, size_t length, uint64_t seed) {
    uint64_t last = 0, first = 0, key = ~seed * 0xA0761D6478BD642Full, h = seed ^ (0x9E3779B97F4A7C15ull * (length + 1));
    if (length >= 8) {
        for (; length > 16; text += 16, length -= 16) h = arena_mix(arena_word(text) ^ h, arena_word(text + 8) ^ key);
        if (length > 8) first = arena_word(text);
        last = arena_word(text + length - 8);
    } else if (length >= 4) {
        last = arena_half(text) << 32 | arena_half(text + length - 4);
    } else {
        for (size_t i = 0; i < length; i++) last = last << 8 | text[i];
    }
    h = arena_mix(first ^ h, last ^ key);
    return (uint32_t)(h ^ (h >> 32));
}

static inline size_t arena_length(const Arena *a, uint32_t slot) {
    return a->entries[slot + 1].begin - a->entries[slot].begin;
}

/* memcmp(a, b, length) == 0, without a call for the few bytes that a name has. */
static inline int arena_same(const uint8_t *a, const uint8_t *b, size_t length) {
    if (length >= 8) {
        for (; length > 16; a += 8, b += 8, length -= 8)
            if (arena_word(a) != arena_word(b)) return 0;
        return ((arena_word(a) ^ arena_word(b)) | (arena_word(a + length - 8) ^ arena_word(b + length - 8))) == 0;
    }
    if (length >= 4) return ((arena_half(a) ^ arena_half(b)) | (arena_half(a + length - 4) ^ arena_half(b + length - 4))) == 0;
    for (; length; length--)
        if (a[length - 1] != b[length - 1]) return 0;
    return 1;
}

/* Whether the entry at `slot` has this name. */
static inline int arena_named(const Arena *a, uint32_t slot, const uint8_t *text, size_t length) {
    const ArenaEntry *entry = &a->entries[slot];
    return entry[1].begin - entry->begin == length && arena_same(a->blob + entry->begin, text, length);
}

/* The slot of a name, or -1. */
static inline int32_t arena_find(const Arena *a, const uint8_t *text, size_t length, uint32_t hash) {
    uint32_t mask = a->mask;
    for (uint32_t at = hash & mask, place; (place = a->table[at]) != 0; at = (at + 1) & mask)
        if (((place ^ hash) & ~mask) == 0 && arena_named(a, (place & mask) - 1, text, length))
            return (int32_t)((place & mask) - 1);
    return -1;
}

/* The weight of a slot; 0 for -1 or less. Without a branch, as which names of a record are new is anybody's guess. */
static inline double arena_weight(const Arena *a, int32_t slot) {
    static const ArenaEntry none = {0, 0.0};
    const ArenaEntry *entry = slot < 0 ? &none : &a->entries[slot];
    return entry->weight;
}

/* Where `arena_find` will look first, or -1; and the memory that it will read, asked for before it is needed. */
static inline int32_t arena_first(const Arena *a, uint32_t hash) {
    uint32_t mask = a->mask;
    for (uint32_t at = hash & mask, place; (place = a->table[at]) != 0; at = (at + 1) & mask)
        if (((place ^ hash) & ~mask) == 0) return (int32_t)((place & mask) - 1);
    return -1;
}

static inline void arena_ask_place(const Arena *a, uint32_t hash) { ARENA_PREFETCH(&a->table[hash & a->mask]); }

static inline void arena_ask_entry(const Arena *a, int32_t slot) {
    ARENA_PREFETCH(&a->entries[slot < 0 ? 0 : slot]);
}

static inline void arena_ask_name(const Arena *a, int32_t slot) {
    ARENA_PREFETCH(a->blob + a->entries[slot].begin);
}

static inline void arena_seat(uint32_t *table, uint32_t mask, uint32_t hash, uint32_t slot) {
    uint32_t at = hash & mask;
    while (table[at]) at = (at + 1) & mask;
    table[at] = (hash & ~mask) | (slot + 1);
}

/* Names that are hashed at a time, so that the places of all are asked for before the first is read. */
enum { ARENA_STRIDE = 32 };

/* Seat the first `count` names anew, in a table of zeros. */
static inline void arena_reseat(const Arena *a, uint32_t *table, uint32_t mask, uint32_t count, uint64_t seed) {
    uint32_t hashes[ARENA_STRIDE], slot, i, n;
    for (slot = 0; slot < count; slot += n) {
        n = count - slot < ARENA_STRIDE ? count - slot : ARENA_STRIDE;
        for (i = 0; i < n; i++) {
            hashes[i] = arena_hash(a->blob + a->entries[slot + i].begin, arena_length(a, slot + i), seed);
            ARENA_PREFETCH(&table[hashes[i] & mask]);
        }
        for (i = 0; i < n; i++) arena_seat(table, mask, hashes[i], slot + i);
    }
}

static inline void arena_open(Arena *a) {
    memset(a, 0, sizeof *a);
    a->table = arena_no_table;
}

static inline void arena_close(Arena *a) {
    if (a->mask) free(a->table);
    free(a->entries);
    free(a->blob);
    arena_open(a);
}

/* How long a table for that many names is. */
static inline size_t arena_places(size_t names) {
    size_t length = 8;
    while (length * 2 < names * 3) length *= 2;
    return length;
}

static inline int arena_retable(Arena *a, size_t names, uint64_t seed) {
    size_t length = arena_places(names);
    uint32_t *table = (uint32_t *)calloc(length, sizeof *table);
    if (table == NULL) return -1;
    arena_reseat(a, table, (uint32_t)(length - 1), a->count, seed);
    if (a->mask) free(a->table);
    a->table = table;
    a->mask = (uint32_t)(length - 1);
    return 0;
}

/* Make room for that many more names and bytes, so that the next insertions cannot fail. `exact`: no reserve for more,
   as a model that was just loaded seldom grows. */
static inline int arena_reserve(Arena *a, size_t names, size_t bytes, int exact, uint64_t seed) {
    size_t count = a->count + names, used = a->used + bytes;
    if (count > ARENA_MOST_NAMES || used > ARENA_MOST_BYTES) return -1;
    if (count > a->room || a->entries == NULL) {
        size_t room = exact ? count : count + count / 8 + 4;
        if (room > ARENA_MOST_NAMES) room = ARENA_MOST_NAMES;
        ArenaEntry *entries = (ArenaEntry *)realloc(a->entries, (room + 1) * sizeof *entries);
        if (entries == NULL) return -1;
        if (a->entries == NULL) entries[0].begin = 0;
        a->entries = entries;
        a->room = (uint32_t)room;
    }
    if (used > a->size || a->blob == NULL) {
        size_t size = exact ? used : used + used / 8 + 32;
        if (size > ARENA_MOST_BYTES) size = ARENA_MOST_BYTES;
        uint8_t *blob = (uint8_t *)realloc(a->blob, size ? size : 1);
        if (blob == NULL) return -1;
        a->blob = blob;
        a->size = size;
    }
    if (count * 3 > ((size_t)a->mask + 1) * 2) return arena_retable(a, count, seed);
    return 0;
}

/* Write the next entry; its name stands in the blob already, or is copied there. */
static inline uint32_t arena_append(Arena *a, size_t length, double weight) {
    uint32_t slot = a->count++;
    a->used += length;
    a->entries[slot].weight = weight;
    a->entries[slot + 1].begin = (uint32_t)a->used;
    return slot;
}

/* memcpy, without a call for the few bytes that a name has. */
static inline void arena_put(uint8_t *to, const uint8_t *from, size_t length) {
    uint64_t last;
    uint32_t half;
    if (length >= 8) {
        last = arena_word(from + length - 8);
        memcpy(to + length - 8, &last, 8);
        for (; length > 8; to += 8, from += 8, length -= 8) memcpy(to, from, 8);
    } else if (length >= 4) {
        half = (uint32_t)arena_half(from + length - 4);
        memcpy(to, from, 4);
        memcpy(to + length - 4, &half, 4);
    } else {
        for (; length; length--) *to++ = *from++;
    }
}

/* Add a name that is not there yet, after `arena_reserve`. */
static inline int32_t arena_insert(Arena *a, const uint8_t *text, size_t length, uint32_t hash, double weight) {
    arena_put(a->blob + a->used, text, length);
    uint32_t slot = arena_append(a, length, weight);
    arena_seat(a->table, a->mask, hash, slot);
    return (int32_t)slot;
}

/* Add a name after `arena_reserve`, or return -1 where it is there already: one look-up for both. */
static inline int32_t arena_add(Arena *a, const uint8_t *text, size_t length, uint32_t hash, double weight) {
    uint32_t mask = a->mask, at = hash & mask, place, slot;
    for (; (place = a->table[at]) != 0; at = (at + 1) & mask)
        if (((place ^ hash) & ~mask) == 0 && arena_named(a, (place & mask) - 1, text, length)) return -1;
    memcpy(a->blob + a->used, text, length);
    slot = arena_append(a, length, weight);
    a->table[at] = (hash & ~mask) | (slot + 1);
    return (int32_t)slot;
}

/* Add the names of a stored block, of which the lengths were checked, after `arena_reserve`; -1 where one comes twice.
   Weights may lie at any address; NULL: weight 0. */
static inline int arena_fill(Arena *a, const uint8_t *lengths, uint32_t count, const uint8_t *text, size_t bytes,
                             const uint8_t *weights, uint64_t seed) {
    ArenaEntry *entries = a->entries + a->count;
    uint32_t *table = a->table, mask = a->mask, slot = a->count, begin = (uint32_t)a->used, hashes[ARENA_STRIDE], length, i, j, n;
    const uint8_t *name = a->blob + begin;
    memcpy(a->blob + begin, text, bytes);
    for (i = 0; i < count; i += n) {
        n = count - i < ARENA_STRIDE ? count - i : ARENA_STRIDE;
        for (j = 0; j < n; j++, name += length) {
            memcpy(&length, lengths + 4 * (size_t)(i + j), 4);
            hashes[j] = arena_hash(name, length, seed);
            ARENA_PREFETCH(&table[hashes[j] & mask]);
        }
        for (j = 0; j < n; j++) {
            uint32_t hash = hashes[j], at = hash & mask, place;
            memcpy(&length, lengths + 4 * (size_t)(i + j), 4);
            for (; (place = table[at]) != 0; at = (at + 1) & mask)
                if (((place ^ hash) & ~mask) == 0 && arena_named(a, (place & mask) - 1, a->blob + begin, length)) return -1;
            table[at] = (hash & ~mask) | ++slot;
            entries[i + j].weight = 0.0;
            if (weights != NULL) memcpy(&entries[i + j].weight, weights + 8 * (size_t)(i + j), 8);
            entries[i + j + 1].begin = begin += length;
        }
    }
    a->count = slot;
    a->used = begin;
    return 0;
}

/* Write the lengths and the bytes of the names as a stored block has them, and return where it ends. */
static inline uint8_t *arena_spill_names(const Arena *a, uint8_t *to) {
    for (uint32_t slot = 0; slot < a->count; slot++) {
        uint32_t length = (uint32_t)arena_length(a, slot);
        memcpy(to + 4 * (size_t)slot, &length, 4);
    }
    to += 4 * (size_t)a->count;
    if (a->count) memcpy(to, a->blob, a->used);
    return to + a->used;
}

static inline uint8_t *arena_spill_weights(const Arena *a, uint8_t *to) {
    for (uint32_t slot = 0; slot < a->count; slot++) memcpy(to + 8 * (size_t)slot, &a->entries[slot].weight, 8);
    return to + 8 * (size_t)a->count;
}

/* Forget the names that came after the first `count`: what undoes a refused batch. */
static inline void arena_truncate(Arena *a, uint32_t count, uint64_t seed) {
    if (count >= a->count) return;
    a->count = count;
    a->used = a->entries[count].begin;
    memset(a->table, 0, ((size_t)a->mask + 1) * sizeof *a->table);
    arena_reseat(a, a->table, a->mask, count, seed);
}

static inline int arena_copy(Arena *to, const Arena *from, uint64_t seed) {
    Arena copy;
    arena_open(&copy);
    if (from->count) {
        if (arena_reserve(&copy, from->count, from->used, 1, seed) < 0) {
            arena_close(&copy);
            return -1;
        }
        memcpy(copy.entries, from->entries, ((size_t)from->count + 1) * sizeof *copy.entries);
        memcpy(copy.blob, from->blob, from->used);
        copy.count = from->count;
        copy.used = from->used;
        if (copy.mask == from->mask) memcpy(copy.table, from->table, ((size_t)copy.mask + 1) * sizeof *copy.table);
        else arena_reseat(&copy, copy.table, copy.mask, copy.count, seed);
    }
    arena_close(to);
    *to = copy;
    return 0;
}

static inline size_t arena_bytes(const Arena *a) {
    return (a->room ? (size_t)(a->room + 1) * sizeof *a->entries : 0) + a->size
        + (a->mask == 0 ? 0 : ((size_t)a->mask + 1) * sizeof *a->table);
}

#endif
