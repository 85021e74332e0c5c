/* B h for several h at once: one pass over the lower triangle of a symmetric matrix, held column after column.

   A product reads half the matrix, which is what takes the time once it no longer fits the caches; so further right
   sides cost little. A strip has as many columns as the registers hold sums for: each is a stream of its own, and memory
   serves eight at once faster than four. The rows of a tile stay in a near cache for a panel of columns.
   The widest registers of this processor are chosen once: generic vectors in `target_clones` would be split up for the
   plainest one before they are cloned. */
#ifndef PA_RIVER_ODM_SYMM_H
#define PA_RIVER_ODM_SYMM_H

#define SYMM_MOST 6 /* right sides that one pass takes */
#define SYMM_PANEL 24 /* a multiple of every C below */
#define SYMM_TILE 2048

typedef void symm_pass(const double *B, long ld, long n, const double *h, double *out, long stride);

#if defined(__GNUC__)
typedef double symm_v8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef double symm_v4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef double symm_v2 __attribute__((vector_size(16), aligned(8), may_alias));

/* columns and rows begin .. end: the block on the diagonal */
static inline __attribute__((always_inline)) void symm_corner(
    const double *B, long ld, long begin, long end, const double *h, double *out, long stride, int count)
{
    for (int r = 0; r < count; r++, h += stride, out += stride)
        for (long j = begin; j < end; j++) {
            double sum = B[j * ld + j] * h[j];
            for (long i = j + 1; i < end; i++) {
                out[i] += B[j * ld + i] * h[j];
                sum += B[j * ld + i] * h[i];
            }
            out[j] += sum;
        }
}

/* columns j .. j + C, rows begin .. end, R right sides: out_i += B_ij h_j and out_j += B_ij h_i */
#define SYMM_STRIP(R, C, W, TARGET, NAME)                                                                       \
static inline __attribute__((always_inline)) TARGET void symm_strip_##NAME##_##R##_##C(                         \
    const double *B, long ld, long begin, long end, long j, const double *h, double *out, long stride)          \
{                                                                                                               \
    symm_v##W sum[R][C];                                                                                        \
    double last[R][C], own[R][C];                                                                               \
    for (int r = 0; r < R; r++)                                                                                 \
        for (int c = 0; c < C; c++) {                                                                           \
            sum[r][c] = (symm_v##W){0};                                                                         \
            last[r][c] = 0.0;                                                                                   \
            own[r][c] = h[r * stride + j + c];                                                                  \
        }                                                                                                       \
    long i = begin;                                                                                             \
    for (; i + W <= end; i += W) {                                                                              \
        symm_v##W b[C];                                                                                         \
        for (int c = 0; c < C; c++)                                                                             \
            b[c] = *(const symm_v##W *)(B + (j + c) * ld + i);                                                  \
        for (int r = 0; r < R; r++) {                                                                           \
            const symm_v##W x = *(const symm_v##W *)(h + r * stride + i);                                       \
            symm_v##W y = *(symm_v##W *)(out + r * stride + i);                                                 \
            for (int c = 0; c < C; c++) {                                                                       \
                y += b[c] * own[r][c];                                                                          \
                sum[r][c] += b[c] * x;                                                                          \
            }                                                                                                   \
            *(symm_v##W *)(out + r * stride + i) = y;                                                           \
        }                                                                                                       \
    }                                                                                                           \
    for (; i < end; i++)                                                                                        \
        for (int c = 0; c < C; c++) {                                                                           \
            const double b = B[(j + c) * ld + i];                                                               \
            for (int r = 0; r < R; r++) {                                                                       \
                out[r * stride + i] += b * own[r][c];                                                           \
                last[r][c] += b * h[r * stride + i];                                                            \
            }                                                                                                   \
        }                                                                                                       \
    for (int r = 0; r < R; r++)                                                                                 \
        for (int c = 0; c < C; c++) {                                                                           \
            for (int v = 0; v < W; v++)                                                                         \
                last[r][c] += sum[r][c][v];                                                                     \
            out[r * stride + j + c] += last[r][c];                                                              \
        }                                                                                                       \
}

#define SYMM(R, C, W, TARGET, NAME)                                                                               \
SYMM_STRIP(R, C, W, TARGET, NAME)                                                                                 \
static TARGET void symm_##NAME##_##R(const double *B, long ld, long n, const double *h, double *out, long stride) \
{                                                                                                                 \
    for (int r = 0; r < R; r++)                                                                                   \
        for (long i = 0; i < n; i++)                                                                              \
            out[r * stride + i] = 0.0;                                                                            \
    for (long j = 0; j < n; j += SYMM_PANEL) {                                                                    \
        const long past = j + SYMM_PANEL < n ? j + SYMM_PANEL : n;                                                \
        for (long begin = j; begin < n; begin += SYMM_TILE) {                                                     \
            const long end = begin + SYMM_TILE < n ? begin + SYMM_TILE : n;                                       \
            for (long c = j; c < past; c += C) {                                                                  \
                const long next = c + C < past ? c + C : past;                                                    \
                if (begin == j)                                                                                   \
                    symm_corner(B, ld, c, next, h, out, stride, R);                                               \
                if (next == c + C) /* below fewer than C columns, the last ones, there is nothing */              \
                    symm_strip_##NAME##_##R##_##C(B, ld, begin == j ? next : begin, end, c, h, out, stride);      \
            }                                                                                                     \
        }                                                                                                         \
    }                                                                                                             \
}

#define SYMM_ALL(ONE, THREE, MORE, W, TARGET, NAME) \
    SYMM(1, ONE, W, TARGET, NAME) \
    SYMM(2, ONE, W, TARGET, NAME) \
    SYMM(3, THREE, W, TARGET, NAME) \
    SYMM(4, MORE, W, TARGET, NAME) \
    SYMM(5, MORE, W, TARGET, NAME) \
    SYMM(6, MORE, W, TARGET, NAME) \
    static symm_pass *const symm_##NAME[] = { \
        0, symm_##NAME##_1, symm_##NAME##_2, symm_##NAME##_3, symm_##NAME##_4, symm_##NAME##_5, symm_##NAME##_6};

SYMM_ALL(4, 2, 2, 2, , plain)
#if defined(__x86_64__)
SYMM_ALL(4, 2, 2, 4, __attribute__((target("avx2,fma"))), half)
SYMM_ALL(8, 6, 4, 8, __attribute__((target("avx512f"))), full)
#endif

/* The pass for 1 <= count <= SYMM_MOST right sides, `stride` apart in h and out. */
static symm_pass *symm_for(int count)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return symm_full[count];
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return symm_half[count];
#endif
    return symm_plain[count];
}
#else
static symm_pass *symm_for(int count)
{
    (void)count;
    return 0; /* one right side after the other */
}
#endif
#endif
