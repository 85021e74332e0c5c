/* The innermost loops over rows of numbers: w . x and x . x in one pass, and the step before them too. */
#ifndef PA_RIVER_ROWS_H
#define PA_RIVER_ROWS_H

#include <stddef.h>

/* In the order of the loops over a dict, for rows so narrow that nothing is gained by another. */
static inline double rows_dot_in_order(const double *w, const double *x, ptrdiff_t n, double *square) {
    double dot = 0.0, sum = 0.0;
    for (ptrdiff_t j = 0; j < n; j++) {
        dot += w[j] * x[j];
        sum += x[j] * x[j];
    }
    *square = sum;
    return dot;
}

static inline void rows_products_in_order(const double *W, ptrdiff_t k, const double *x, ptrdiff_t n, double *out) {
    for (ptrdiff_t c = 0; c < k; c++) {
        double dot = 0.0;
        for (ptrdiff_t j = 0; j < n; j++) dot += W[c * n + j] * x[j];
        out[c] = dot;
    }
}

#if defined(__GNUC__)
/* Eight sums, so that no addition waits for the one before; without FMA, so that every processor gives the same bits.
   Where it can, the loader picks a wider version: one wheel for all. Measured against the compiler's own vector loop at
   100 / 1000 numbers a row: 1.5 / 1.3 times as fast. */
typedef double rows_four __attribute__((vector_size(32), aligned(8), may_alias));

#if !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define ROWS_CLONES __attribute__((target_clones("avx2", "default"), unused))
#else
#define ROWS_CLONES __attribute__((unused))
#endif

#define ROWS_SUMS(STEP, REST)                                                       \
    rows_four dot = {0}, dot_b = {0}, sq = {0}, sq_b = {0};                         \
    double rest = 0.0, rest_square = 0.0;                                           \
    ptrdiff_t j = 0;                                                                \
    for (; j + 8 <= n; j += 8) {                                                    \
        const rows_four x_a = *(const rows_four *)(x + j), x_b = *(const rows_four *)(x + j + 4); \
        STEP                                                                        \
        sq += x_a * x_a;                                                            \
        sq_b += x_b * x_b;                                                          \
    }                                                                               \
    for (; j < n; j++) {                                                            \
        REST                                                                        \
        rest += w[j] * x[j];                                                        \
        rest_square += x[j] * x[j];                                                 \
    }                                                                               \
    dot += dot_b;                                                                   \
    sq += sq_b;                                                                     \
    *square = rest_square + ((sq[0] + sq[1]) + (sq[2] + sq[3]));                    \
    return rest + ((dot[0] + dot[1]) + (dot[2] + dot[3]));

ROWS_CLONES
static double rows_dot(const double *w, const double *x, ptrdiff_t n, double *square) {
    ROWS_SUMS(dot += *(const rows_four *)(w + j) * x_a; dot_b += *(const rows_four *)(w + j + 4) * x_b;, )
}

/* w += tau * last, then as `rows_dot`: while w is in hand, and the next row on its way from memory. */
ROWS_CLONES
static double rows_move_dot(double *w, double tau, const double *last, const double *x, ptrdiff_t n, double *square) {
    ROWS_SUMS(
        const rows_four w_a = *(const rows_four *)(w + j) + tau * *(const rows_four *)(last + j);
        const rows_four w_b = *(const rows_four *)(w + j + 4) + tau * *(const rows_four *)(last + j + 4);
        *(rows_four *)(w + j) = w_a;
        *(rows_four *)(w + j + 4) = w_b;
        dot += w_a * x_a;
        dot_b += w_b * x_b;,
        w[j] += tau * last[j];)
}

/* totals += value * row. */
ROWS_CLONES
static void rows_add(double *totals, double value, const double *row, ptrdiff_t n) {
    ptrdiff_t j = 0;
    for (; j + 4 <= n; j += 4) *(rows_four *)(totals + j) += value * *(const rows_four *)(row + j);
    for (; j < n; j++) totals[j] += value * row[j];
}

/* The products of x with `lanes` rows of W: x is read once for all of them. */
static inline __attribute__((always_inline)) void rows_lanes(const double *W, const int lanes, const double *x, ptrdiff_t n,
                                                             double *out) {
    rows_four sum[4] = {{0}}, sum_b[4] = {{0}};
    double rest[4] = {0};
    ptrdiff_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (int r = 0; r < lanes; r++) {
            sum[r] += *(const rows_four *)(W + r * n + j) * *(const rows_four *)(x + j);
            sum_b[r] += *(const rows_four *)(W + r * n + j + 4) * *(const rows_four *)(x + j + 4);
        }
    for (; j + 4 <= n; j += 4)
        for (int r = 0; r < lanes; r++) sum[r] += *(const rows_four *)(W + r * n + j) * *(const rows_four *)(x + j);
    for (; j < n; j++)
        for (int r = 0; r < lanes; r++) rest[r] += W[r * n + j] * x[j];
    for (int r = 0; r < lanes; r++) {
        sum[r] += sum_b[r];
        out[r] = rest[r] + ((sum[r][0] + sum[r][1]) + (sum[r][2] + sum[r][3]));
    }
}

/* The products of x with the first k rows of W. */
ROWS_CLONES
static void rows_products(const double *W, ptrdiff_t k, const double *x, ptrdiff_t n, double *out) {
    ptrdiff_t c = 0;
    for (; c + 4 <= k; c += 4) rows_lanes(W + c * n, 4, x, n, out + c);
    for (; c + 2 <= k; c += 2) rows_lanes(W + c * n, 2, x, n, out + c);
    if (c < k) rows_lanes(W + c * n, 1, x, n, out + c);
}
#else
#define rows_dot rows_dot_in_order

static double rows_move_dot(double *w, double tau, const double *last, const double *x, ptrdiff_t n, double *square) {
    for (ptrdiff_t j = 0; j < n; j++) w[j] += tau * last[j];
    return rows_dot_in_order(w, x, n, square);
}

static void rows_add(double *totals, double value, const double *row, ptrdiff_t n) {
    for (ptrdiff_t j = 0; j < n; j++) totals[j] += value * row[j];
}

#define rows_products rows_products_in_order
#endif

#endif
