/* CRC-32 as zlib has it, by carry-less multiplication where the processor can do that: several times as fast as zlib's own
   tables. A state of 1,000 weights is summed up when it is read and when it is written, which was a third of both.

   Gopal et al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction, Intel, 2009: 64 bytes (256, where
   registers are that wide) are folded into the next, what is left into 128 bits, and these are reduced by Barrett's
   method. */
#ifndef PA_RIVER_CRC_H
#define PA_RIVER_CRC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>

static uint32_t crc_of_byte[256];
static uint64_t crc_powers[6]; /* by which 64, 16 and 256 bytes are folded: both halves of each */
static int crc_wide; /* whether there are registers of 64 bytes for it */

/* x^n modulo the polynomial, as the multiplication of reflected bits wants it. */
static uint64_t crc_power(int n) {
    uint32_t value = 0x80000000u;
    for (; n > 0; n--) value = value & 1 ? (value >> 1) ^ 0xEDB88320u : value >> 1;
    return (uint64_t)value << 1;
}

/* Prepare; whether `crc_sum` works on this processor. */
static int crc_open(void) {
    static const int bits[3] = {512, 128, 2048};
    if (!__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("sse4.1")) return 0;
    crc_wide = __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f");
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++) value = value & 1 ? (value >> 1) ^ 0xEDB88320u : value >> 1;
        crc_of_byte[byte] = value;
    }
    for (int i = 0; i < 3; i++) {
        crc_powers[2 * i] = crc_power(bits[i] + 32);
        crc_powers[2 * i + 1] = crc_power(bits[i] - 32);
    }
    return 1;
}

#define CRC_LOAD(at) _mm_loadu_si128((const __m128i *)(at))
#define CRC_FOLD(x, by, next) \
    _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00), _mm_clmulepi64_si128(x, by, 0x11)), next)
#define CRC_WIDE_FOLD(x, by, next) \
    _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, by, 0x00), _mm512_clmulepi64_epi128(x, by, 0x11), next, 0x96)

/* Fold whole pieces of 256 bytes, the first of which `crc` opens, into the 64 of `folded`, and return how many they were. */
__attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.1")))
static size_t crc_fold_wide(const uint8_t *data, size_t size, uint32_t crc, uint8_t folded[64]) {
    const __m512i far = _mm512_broadcast_i32x4(CRC_LOAD(crc_powers + 4)), near = _mm512_broadcast_i32x4(CRC_LOAD(crc_powers));
    __m512i a = _mm512_xor_si512(_mm512_loadu_si512(data), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    __m512i b = _mm512_loadu_si512(data + 64), c = _mm512_loadu_si512(data + 128), d = _mm512_loadu_si512(data + 192);
    size_t at;
    for (at = 256; size - at >= 256; at += 256) {
        a = CRC_WIDE_FOLD(a, far, _mm512_loadu_si512(data + at));
        b = CRC_WIDE_FOLD(b, far, _mm512_loadu_si512(data + at + 64));
        c = CRC_WIDE_FOLD(c, far, _mm512_loadu_si512(data + at + 128));
        d = CRC_WIDE_FOLD(d, far, _mm512_loadu_si512(data + at + 192));
    }
    _mm512_storeu_si512(folded, CRC_WIDE_FOLD(CRC_WIDE_FOLD(CRC_WIDE_FOLD(a, near, b), near, c), near, d));
    return at;
}

__attribute__((target("pclmul,sse4.1")))
static uint32_t crc_sum(const uint8_t *data, size_t size) {
    const __m128i four = CRC_LOAD(crc_powers), one = CRC_LOAD(crc_powers + 2), low = _mm_set_epi32(0, -1, 0, -1);
    const __m128i last = _mm_set_epi64x(0, 0x0163cd6124), barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    uint32_t crc = 0xFFFFFFFFu;
    if (size >= 64) {
        uint8_t folded[64];
        size_t done = 64;
        if (crc_wide && size >= 512) {
            done = crc_fold_wide(data, size, crc, folded);
        } else {
            memcpy(folded, data, 64);
            for (int i = 0; i < 4; i++) folded[i] ^= (uint8_t)(crc >> 8 * i);
        }
        __m128i a = CRC_LOAD(folded), b = CRC_LOAD(folded + 16), c = CRC_LOAD(folded + 32), d = CRC_LOAD(folded + 48), part;
        for (data += done, size -= done; size >= 64; data += 64, size -= 64) {
            a = CRC_FOLD(a, four, CRC_LOAD(data));
            b = CRC_FOLD(b, four, CRC_LOAD(data + 16));
            c = CRC_FOLD(c, four, CRC_LOAD(data + 32));
            d = CRC_FOLD(d, four, CRC_LOAD(data + 48));
        }
        a = CRC_FOLD(a, one, b);
        a = CRC_FOLD(a, one, c);
        a = CRC_FOLD(a, one, d);
        for (; size >= 16; data += 16, size -= 16) a = CRC_FOLD(a, one, CRC_LOAD(data));
        a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, one, 0x10));
        a = _mm_xor_si128(_mm_srli_si128(a, 4), _mm_clmulepi64_si128(_mm_and_si128(a, low), last, 0x00));
        part = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(a, low), barrett, 0x10), low);
        crc = (uint32_t)_mm_extract_epi32(_mm_xor_si128(a, _mm_clmulepi64_si128(part, barrett, 0x00)), 1);
    }
    for (; size; size--) crc = (crc >> 8) ^ crc_of_byte[(crc ^ *data++) & 0xFF];
    return ~crc;
}
#else
static inline int crc_open(void) { return 0; }
static inline uint32_t crc_sum(const uint8_t *data, size_t size) { (void)data; (void)size; return 0; }
#endif

#endif
