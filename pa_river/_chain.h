/* The two hot loops of a first-order chain, over tags in lanes of eight: rows of emissions summed, and one step of Viterbi.

   A lane adds and multiplies each tag by itself, in the order in which the reference does; no sum runs across lanes and
   nothing is fused. So the bits do not depend on the width of the machine's registers, which is chosen when it runs. */
#ifndef PA_RIVER_CHAIN_H
#define PA_RIVER_CHAIN_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__GLIBC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CHAIN_CLONES __attribute__((unused, target_clones("avx512f", "avx2", "default")))
#elif defined(__GNUC__)
#define CHAIN_CLONES __attribute__((unused))
#else
#define CHAIN_CLONES
#endif

#define CHAIN_LANE 8
#if !defined(__GNUC__)
#define CHAIN_INLINE static inline
#endif

#if defined(__GNUC__)
#define CHAIN_INLINE static inline __attribute__((always_inline))
typedef double chain_lane __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t chain_mask __attribute__((vector_size(64)));
#define CHAIN_AT(p) (*(chain_lane *)(p))
#define CHAIN_ALL(v) ((chain_lane){v, v, v, v, v, v, v, v})

/* best = candidate > best ? candidate : best, in each lane */
#define CHAIN_KEEP_LARGER(best, candidate) do { \
    chain_lane other_ = (candidate); \
    chain_mask larger_ = other_ > (best); \
    (best) = (chain_lane)(((chain_mask)other_ & larger_) | ((chain_mask)(best) & ~larger_)); \
} while (0)

CHAIN_INLINE void chain_sum_lanes(const double *block, size_t stride, const int32_t *codes, const int32_t *place,
                                  const double *values, size_t n, double *out, const int lanes, const int ones) {
    chain_lane a = CHAIN_ALL(0.0), b = a, c = a;
    for (size_t f = 0; f < n; f++) {
        int32_t at = codes[f];
        if (at < 0 && (at = place[-1 - at]) < 0) continue;
        const double *row = block + (size_t)at * stride;
        if (ones) {
            a += CHAIN_AT(row);
            if (lanes > 1) b += CHAIN_AT(row + 8);
            if (lanes > 2) c += CHAIN_AT(row + 16);
        } else {
            chain_lane v = CHAIN_ALL(values[f]);
            a += CHAIN_AT(row) * v;
            if (lanes > 1) b += CHAIN_AT(row + 8) * v;
            if (lanes > 2) c += CHAIN_AT(row + 16) * v;
        }
    }
    CHAIN_AT(out) = a;
    if (lanes > 1) CHAIN_AT(out + 8) = b;
    if (lanes > 2) CHAIN_AT(out + 16) = c;
}

CHAIN_INLINE void chain_step_lanes(const double *before, const double *move, size_t stride, size_t tags,
                                   const double *emit, double *out, const int lanes) {
    chain_lane v = CHAIN_ALL(before[0]);
    chain_lane a = v + CHAIN_AT(move), b = a, c = a;
    if (lanes > 1) b = v + CHAIN_AT(move + 8);
    if (lanes > 2) c = v + CHAIN_AT(move + 16);
    for (size_t p = 1; p < tags; p++) {
        const double *m = move + p * stride;
        v = CHAIN_ALL(before[p]);
        CHAIN_KEEP_LARGER(a, v + CHAIN_AT(m));
        if (lanes > 1) CHAIN_KEEP_LARGER(b, v + CHAIN_AT(m + 8));
        if (lanes > 2) CHAIN_KEEP_LARGER(c, v + CHAIN_AT(m + 16));
    }
    CHAIN_AT(out) = a + CHAIN_AT(emit);
    if (lanes > 1) CHAIN_AT(out + 8) = b + CHAIN_AT(emit + 8);
    if (lanes > 2) CHAIN_AT(out + 16) = c + CHAIN_AT(emit + 16);
}

CHAIN_INLINE int32_t chain_origin(const double *before, const double *into, size_t tags, size_t width) {
    chain_lane largest = CHAIN_AT(before) + CHAIN_AT(into);
    for (size_t p = 8; p < width; p += 8) CHAIN_KEEP_LARGER(largest, CHAIN_AT(before + p) + CHAIN_AT(into + p));
    double best = largest[0];
    for (int c = 1; c < 8; c++) if (largest[c] > best) best = largest[c];
    for (size_t p = 0; p < tags; p++) if (before[p] + into[p] == best) return (int32_t)p;
    return 0;
}

/* Whether all of n values, a multiple of 8, are finite. */
CHAIN_CLONES static int chain_finite(const double *values, size_t n) {
    chain_lane spread = CHAIN_ALL(0.0);
    for (size_t i = 0; i < n; i += 8) spread += CHAIN_AT(values + i) - CHAIN_AT(values + i);
    for (int c = 0; c < 8; c++) if (spread[c] != 0.0) return 0;
    return 1;
}

static inline void chain_prefetch(const void *place) { __builtin_prefetch(place, 1); }
#else
static void chain_sum_lanes(const double *block, size_t stride, const int32_t *codes, const int32_t *place,
                            const double *values, size_t n, double *out, const int lanes, const int ones) {
    int width = lanes * CHAIN_LANE;
    for (int c = 0; c < width; c++) out[c] = 0.0;
    for (size_t f = 0; f < n; f++) {
        int32_t at = codes[f];
        if (at < 0 && (at = place[-1 - at]) < 0) continue;
        const double *row = block + (size_t)at * stride;
        double v = ones ? 1.0 : values[f];
        for (int c = 0; c < width; c++) out[c] += row[c] * v;
    }
}

static void chain_step_lanes(const double *before, const double *move, size_t stride, size_t tags, const double *emit,
                             double *out, const int lanes) {
    for (int c = 0; c < lanes * CHAIN_LANE; c++) {
        double best = before[0] + move[c];
        for (size_t p = 1; p < tags; p++) {
            double other = before[p] + move[p * stride + c];
            if (other > best) best = other;
        }
        out[c] = best + emit[c];
    }
}

static int32_t chain_origin(const double *before, const double *into, size_t tags, size_t width) {
    int32_t at = 0;
    (void)width;
    for (size_t p = 1; p < tags; p++) if (before[p] + into[p] > before[at] + into[at]) at = (int32_t)p;
    return at;
}

static int chain_finite(const double *values, size_t n) {
    double spread = 0.0;
    for (size_t i = 0; i < n; i++) spread += values[i] - values[i];
    return spread == 0.0;
}

static inline void chain_prefetch(const void *place) { (void)place; }
#endif

CHAIN_INLINE void chain_sum(const double *block, size_t stride, const int32_t *codes, const int32_t *place,
                            const double *values, size_t n, double *out, size_t width, const int ones) {
    for (; width >= 24; width -= 24, block += 24, out += 24)
        chain_sum_lanes(block, stride, codes, place, values, n, out, 3, ones);
    if (width == 16) chain_sum_lanes(block, stride, codes, place, values, n, out, 2, ones);
    else if (width == 8) chain_sum_lanes(block, stride, codes, place, values, n, out, 1, ones);
}

/* out[i, c] = the sum over the features f of token i of block[row of f, c] * values[f], for c < width, a multiple of 8.
   Codes, from ends[0] on, are rows; one below 0 is looked up at place[-1 - code], and weighs nothing if it is below 0
   there too. `values` NULL stands for ones. */
CHAIN_CLONES static void chain_emissions(const double *block, size_t stride, const int32_t *codes, const int32_t *place,
                                         const double *values, const int64_t *ends, size_t tokens, double *out,
                                         size_t width) {
    for (size_t i = 0; i < tokens; i++, out += width) {
        size_t at = (size_t)(ends[i] - ends[0]), n = (size_t)(ends[i + 1] - ends[i]);
        if (values) chain_sum(block, stride, codes + at, place, values + at, n, out, width, 0);
        else chain_sum(block, stride, codes + at, place, values, n, out, width, 1);
    }
}

CHAIN_INLINE void chain_step(const double *before, const double *move, size_t stride, size_t tags, const double *emit,
                             double *out, size_t width) {
    for (; width >= 24; width -= 24, move += 24, emit += 24, out += 24)
        chain_step_lanes(before, move, stride, tags, emit, out, 3);
    if (width == 16) chain_step_lanes(before, move, stride, tags, emit, out, 2);
    else if (width == 8) chain_step_lanes(before, move, stride, tags, emit, out, 1);
}

/* best[i, c] = emit[i, c] + the largest over p < tags of best[i - 1, p] + move[p, c], for every token but the first. */
CHAIN_CLONES static void chain_forward(const double *move, size_t stride, size_t tags, const double *emit, double *best,
                                       size_t tokens, size_t width) {
    for (size_t i = 1; i < tokens; i++, best += width)
        chain_step(best, move, stride, tags, emit + i * width, best + width, width);
}

/* Given path[tokens - 1], put in path[i - 1] the first p < tags with the largest best[i - 1, p] + into[path[i], p];
   `into` is minus infinity from there up to `width`. */
CHAIN_CLONES static void chain_back(const double *best, const double *into, size_t tags, int32_t *path, size_t tokens,
                                    size_t width) {
    for (size_t i = tokens - 1; i > 0; i--)
        path[i - 1] = chain_origin(best + (i - 1) * width, into + (size_t)path[i] * width, tags, width);
}

#endif
