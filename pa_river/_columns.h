/* The weights of an arena's int names in an array by column, for sparse batches: one look-up a feature, and no hash.

   weights  by column; UNREAD until a batch asks for it, ABSENT where the arena has no such name
   slots    by column: its slot in the arena + 1, or 0
   read     the columns that are not UNREAD
   fresh    the columns that a batch gave a weight and that have no name in the arena yet, in order of arrival

   While any column is read, `weights` holds the truth and the arena may be behind: `columns_settle` writes it back, and
   adds the fresh names. A score in which an UNREAD or ABSENT weight took part is NaN, so the fast loop need not look.
   A function that cannot get memory returns -1 and has changed nothing that counts. */
#ifndef PA_RIVER_COLUMNS_H
#define PA_RIVER_COLUMNS_H

#include "_arena.h"

typedef struct {
    double *weights;
    int32_t *slots, *read, *fresh;
    const int64_t *numbers; /* the names of the columns, or NULL: their own numbers */
    size_t width, reads, read_room, news, new_room;
} Columns;

#define COLUMN_UNREAD UINT64_C(0x7FF8000000000001)
#define COLUMN_ABSENT UINT64_C(0x7FF8000000000002)

static inline void column_mark(double *weight, uint64_t mark) { memcpy(weight, &mark, 8); }

static inline int column_is(const double *weight, uint64_t mark) {
    uint64_t bits;
    memcpy(&bits, weight, 8);
    return bits == mark;
}

/* How `_pack.name_bytes` spells an int of 64 bits. */
static inline void column_text(const Columns *c, int32_t column, uint8_t text[10]) {
    int64_t number = c->numbers ? c->numbers[column] : column;
    text[0] = 0xFF;
    text[1] = 'i';
    memcpy(text + 2, &number, 8);
}

static inline void columns_close(Columns *c) {
    free(c->weights);
    free(c->slots);
    free(c->read);
    free(c->fresh);
    memset(c, 0, sizeof *c);
}

static inline int columns_widen(Columns *c, size_t width) {
    if (width <= c->width) return 0;
    double *weights = (double *)realloc(c->weights, width * sizeof *weights);
    if (weights == NULL) return -1;
    c->weights = weights;
    int32_t *slots = (int32_t *)calloc(width, sizeof *slots); /* pages that nobody asks for cost nothing */
    if (slots == NULL) return -1;
    if (c->width) memcpy(slots, c->slots, c->width * sizeof *slots);
    free(c->slots);
    c->slots = slots;
    for (size_t i = c->width; i < width; i++) column_mark(&weights[i], COLUMN_UNREAD);
    c->width = width;
    return 0;
}

static inline int column_push(int32_t **list, size_t *count, size_t *room, int32_t column) {
    if (*count == *room) {
        size_t more = *room * 2 + 64;
        int32_t *larger = (int32_t *)realloc(*list, more * sizeof **list);
        if (larger == NULL) return -1;
        *list = larger;
        *room = more;
    }
    (*list)[(*count)++] = column;
    return 0;
}

/* The slot of a column in the arena, or -1. */
static inline int32_t column_slot(Columns *c, const Arena *a, uint64_t seed, int32_t column) {
    if (c->slots[column] == 0) {
        uint8_t text[10];
        column_text(c, column, text);
        c->slots[column] = arena_find(a, text, 10, arena_hash(text, 10, seed)) + 1;
    }
    return c->slots[column] - 1;
}

/* w . x over the columns of a row, and x . x, in the order of `learn_one`; NaN where a weight was not read yet. */
static inline double columns_dot(const double *own, const int32_t *column, const double *x, ptrdiff_t n, double *square) {
    double dot = 0.0, sum = 0.0;
    for (ptrdiff_t j = 0; j < n; j++) {
        dot += own[column[j]] * x[j];
        sum += x[j] * x[j];
    }
    *square = sum;
    return dot;
}

/* Read what the row has not read yet, and return w . x, absent names weighing 0, in `dot`. */
static inline int columns_read(Columns *c, const Arena *a, uint64_t seed, const int32_t *column, const double *x,
                               ptrdiff_t n, double *dot) {
    double sum = 0.0;
#if defined(__GNUC__)
    if (a->count) /* else no slot is looked at */
        for (ptrdiff_t j = 0; j < n; j++) __builtin_prefetch(&c->slots[column[j]], 1);
#endif
    for (ptrdiff_t j = 0; j < n; j++) {
        double *weight = &c->weights[column[j]];
        if (column_is(weight, COLUMN_UNREAD)) {
            int32_t slot = a->count ? column_slot(c, a, seed, column[j]) : -1;
            if (column_push(&c->read, &c->reads, &c->read_room, column[j]) < 0) return -1;
            if (slot >= 0) *weight = a->entries[slot].weight;
            else column_mark(weight, COLUMN_ABSENT);
        }
        sum += (column_is(weight, COLUMN_ABSENT) ? 0.0 : *weight) * x[j];
    }
    *dot = sum;
    return 0;
}

/* What a sparse batch did to a column, for taking it back. */
typedef struct { double weight; int32_t column; } ColumnNote;

/* Move the weights of a row that was read by `tau` x or, unless `ordinary`, by length * (x / norm). Returns how many notes
   it took, -1 if a new weight is not finite (`notes` tells how many to take back), -2 without memory. */
static inline ptrdiff_t columns_go(Columns *c, const int32_t *column, const double *x, ptrdiff_t n, double tau,
                                   double length, double norm, int ordinary, ColumnNote *note, ptrdiff_t *notes) {
    double *own = c->weights, spread = 0.0;
    ptrdiff_t taken = 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        double *weight = &own[column[j]], before = *weight;
        note[taken].weight = before;
        note[taken].column = column[j];
        if (before != before) { /* absent: what is here was read */
            if (x[j] == 0.0) continue;
            *notes = taken;
            if (column_push(&c->fresh, &c->news, &c->new_room, column[j]) < 0) return -2;
            before = 0.0;
        }
        taken++;
        before += ordinary ? tau * x[j] : length * (x[j] / norm);
        *weight = before;
        spread += before - before; /* NaN as soon as one weight is not finite */
    }
    *notes = taken;
    return spread == 0.0 ? taken : -1;
}

static inline ptrdiff_t columns_move(Columns *c, const int32_t *column, const double *x, ptrdiff_t n, double tau,
                                     double length, double norm, int ordinary, ColumnNote *note, ptrdiff_t *notes) {
    return ordinary ? columns_go(c, column, x, n, tau, 0.0, 1.0, 1, note, notes)
                    : columns_go(c, column, x, n, tau, length, norm, 0, note, notes);
}

/* Bring the arena up to date. The columns stay known by their slots, and are UNREAD again. */
static inline int columns_settle(Columns *c, Arena *a, uint64_t seed) {
    if (c->news && arena_reserve(a, c->news, 10 * c->news, 0, seed) < 0) return -1;
    for (size_t i = 0; i < c->reads; i++) {
        int32_t column = c->read[i];
        double *weight = &c->weights[column];
        if (c->slots[column]) a->entries[c->slots[column] - 1].weight = *weight;
        else if (!column_is(weight, COLUMN_ABSENT)) continue; /* fresh: comes in its order */
        column_mark(weight, COLUMN_UNREAD);
    }
    for (size_t i = 0; i < c->news; i++) {
        uint8_t text[10];
        int32_t column = c->fresh[i];
        column_text(c, column, text);
        c->slots[column] = arena_insert(a, text, 10, arena_hash(text, 10, seed), c->weights[column]) + 1;
        column_mark(&c->weights[column], COLUMN_UNREAD);
    }
    c->reads = c->news = 0;
    return 0;
}

static inline size_t columns_bytes(const Columns *c) {
    return c->width * (sizeof *c->weights + sizeof *c->slots) + (c->read_room + c->new_room) * sizeof *c->read;
}

#endif
