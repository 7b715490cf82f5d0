/*
 * checksum.c - see checksum.h.
 *
 * CRC arithmetic. A crc register is a polynomial over GF(2), bit 31 the coefficient of x^0.
 * Feeding n zero bytes multiplies it by x^(8n) modulo P. That lets three lanes run over three
 * neighbouring blocks of equal length at once and be joined: crc(A B C) =
 * ((crc(A) * x^8n) ^ crc(B)) * x^8n ^ crc(C), with lanes B and C started from 0. The multiplication
 * by x^(8n) is linear, so four tables of 256 entries do it, one pair of block lengths being enough.
 *
 * Inputs shorter than three short lanes are cut in three as well, where the processor multiplies
 * polynomials: x^(8n - 33) stands in a table for each length n of such a lane. A product of two
 * registers comes out times x, and the step that reduces it multiplies by x^32.
 *
 * All tables are filled by a constructor, before any other code of the core can run.
 */
#include "base/checksum.h"

#include "base/assert.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h> /* __builtin_cpu_supports would link the compiler's run-time library */
#include <wmmintrin.h>
#define HAVE_CRC_INSTRUCTION 1
#define HAVE_PRODUCT_INSTRUCTION 1
#if defined(__clang__) /* for which the CRC instructions are a feature of their own */
#define CRC_TARGET __attribute__((target("sse4.2,crc32,pclmul")))
#else
#define CRC_TARGET __attribute__((target("sse4.2,pclmul")))
#endif
#define CRC_STEP8(crc, value) __builtin_ia32_crc32di((crc), (value)) /* upper half zero */
#define CRC_STEP4(crc, value) __builtin_ia32_crc32si((crc), (value))
#define CRC_STEP1(crc, value) __builtin_ia32_crc32qi((crc), (value))
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1u << 7)
#endif
#define HAVE_CRC_INSTRUCTION 1
#define CRC_TARGET __attribute__((target("+crc")))
#define CRC_STEP8(crc, value) __crc32cd((uint32_t)(crc), (value))
#define CRC_STEP4(crc, value) __crc32cw((crc), (value))
#define CRC_STEP1(crc, value) __crc32cb((crc), (value))
#endif

enum {
    LONG_LANE = 4096, /* bytes of a lane for large inputs; 3 lanes at a time */
    SHORT_LANE = 256, /* and for what is left over */
    LEAST_IN_LANES = 96, /* bytes: less is not worth cutting */
};
static const uint32_t POLYNOMIAL = 0x82f63b78u;
static const uint32_t CHECK_VALUE = 0xe3069283u; /* CRC-32C of "123456789" */

typedef uint32_t (*crc_function)(uint32_t crc, const void *data, size_t size);

static uint32_t slices[8][256];
static uint32_t long_shift[4][256];
static uint32_t short_shift[4][256];
static uint32_t lane_factor[2 * SHORT_LANE / 8 + 1]; /* of 8 bytes each: x^(64 i - 33) */
static crc_function chosen = mqx_crc32c_portable;
static bool hardware;

static inline uint64_t load64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint32_t load32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* a * b modulo P. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (int bit = 31; bit >= 0; bit--) {
        if ((a >> bit & 1u) != 0) {
            product ^= b;
        }
        b = (b & 1u) != 0 ? b >> 1 ^ POLYNOMIAL : b >> 1;
    }
    return product;
}

/* x^bits modulo P. */
static uint32_t power_of_x(uint32_t bits)
{
    MQX_ASSERT(bits > 0);
    uint32_t result = 1u << 31; /* x^0 */
    uint32_t square = 1u << 30; /* x^1 */
    for (; bits != 0; bits >>= 1) {
        if ((bits & 1u) != 0) {
            result = multiply(result, square);
        }
        square = multiply(square, square);
    }
    MQX_ASSERT(result != 0); /* x has an inverse modulo P */
    return result;
}

static void fill_factors(void)
{
    for (uint32_t i = 1; i < MQX_ARRAY_COUNT(lane_factor); i++) {
        lane_factor[i] = power_of_x(64 * i - 33);
        MQX_ASSERT(lane_factor[i] != 0);
    }
}

static void fill_shift(uint32_t table[4][256], uint32_t bytes)
{
    MQX_ASSERT(bytes % 8 == 0);
    uint32_t factor = power_of_x(8 * bytes);
    for (uint32_t k = 0; k < 4; k++) {
        for (uint32_t bit = 0; bit < 8; bit++) {
            table[k][1u << bit] = multiply(factor, 1u << bit << (8 * k));
        }
        for (uint32_t i = 1; i < 256; i++) { /* linear: an entry is the sum of its bits' entries */
            table[k][i] = table[k][i & (i - 1)] ^ table[k][i & (~i + 1)];
        }
    }
}

static void fill_slices(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc & 1u) != 0 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
        }
        slices[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (int k = 1; k < 8; k++) {
            uint32_t before = slices[k - 1][i];
            slices[k][i] = before >> 8 ^ slices[0][before & 0xffu];
        }
    }
    MQX_ASSERT(slices[0][0] == 0);
    MQX_ASSERT(slices[0][128] == POLYNOMIAL);
}

static bool detect_hardware(void)
{
#if defined(__x86_64__)
    unsigned a, b, features, d;
    return __get_cpuid(1, &a, &b, &features, &d) != 0 && (features & bit_SSE4_2) != 0 &&
           (features & bit_PCLMUL) != 0;
#elif defined(__aarch64__)
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#else
    return false;
#endif
}

__attribute__((constructor)) static void prepare(void)
{
    fill_slices();
    fill_shift(long_shift, LONG_LANE);
    fill_shift(short_shift, SHORT_LANE);
    fill_factors();
    hardware = detect_hardware();
    chosen = hardware ? mqx_crc32c_hardware : mqx_crc32c_portable;
    MQX_ASSERT(mqx_crc32c_portable(0, "123456789", 9) == CHECK_VALUE);
    MQX_ASSERT(chosen(0, "123456789", 9) == CHECK_VALUE);
}

uint32_t mqx_crc32c_portable(uint32_t crc, const void *data, size_t size)
{
    MQX_ASSERT(data != NULL || size == 0);
    MQX_ASSERT(slices[0][255] != 0);
    const uint8_t *at = data;

    crc = ~crc;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word = load64(at) ^ crc;
        crc = slices[7][word & 0xffu] ^ slices[6][word >> 8 & 0xffu] ^
              slices[5][word >> 16 & 0xffu] ^ slices[4][word >> 24 & 0xffu] ^
              slices[3][word >> 32 & 0xffu] ^ slices[2][word >> 40 & 0xffu] ^
              slices[1][word >> 48 & 0xffu] ^ slices[0][word >> 56];
    }
    for (; size > 0; size--, at++) {
        crc = crc >> 8 ^ slices[0][(crc ^ *at) & 0xffu];
    }
    return ~crc;
}

#ifdef HAVE_CRC_INSTRUCTION
static inline uint32_t shift(uint32_t table[4][256], uint32_t crc)
{
    return table[0][crc & 0xffu] ^ table[1][crc >> 8 & 0xffu] ^ table[2][crc >> 16 & 0xffu] ^
           table[3][crc >> 24];
}

/* A lane's register is 64 bits wide, as the instruction has it: nothing is cut off in between. */
struct lanes {
    uint64_t first, second, third;
};

CRC_TARGET static inline struct lanes run_lanes(uint32_t crc, const uint8_t *at, size_t lane)
{
    MQX_ASSERT(lane % 8 == 0);
    uint64_t first = crc, second = 0, third = 0;

    for (size_t i = 0; i < lane; i += 8) {
        first = CRC_STEP8(first, load64(at + i));
        second = CRC_STEP8(second, load64(at + lane + i));
        third = CRC_STEP8(third, load64(at + 2 * lane + i));
    }
    return (struct lanes){first, second, third};
}

/* One round of three lanes of `lane` bytes; crc is the register, not inverted. */
CRC_TARGET static uint32_t three_lanes(uint32_t crc, const uint8_t *at, size_t lane,
                                       uint32_t table[4][256])
{
    MQX_ASSERT(at != NULL);
    MQX_ASSERT(lane == LONG_LANE || lane == SHORT_LANE);
    const struct lanes lanes = run_lanes(crc, at, lane);
    crc = shift(table, (uint32_t)lanes.first) ^ (uint32_t)lanes.second;
    return shift(table, crc) ^ (uint32_t)lanes.third;
}

#ifdef HAVE_PRODUCT_INSTRUCTION
CRC_TARGET static inline __m128i product(uint64_t a, uint32_t b)
{
    return _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)a), _mm_cvtsi32_si128((int)b), 0);
}

/* Three lanes of `lane` bytes, a multiple of 8 up to SHORT_LANE. */
CRC_TARGET static uint32_t three_short_lanes(uint32_t crc, const uint8_t *at, size_t lane)
{
    MQX_ASSERT(lane % 8 == 0);
    MQX_ASSERT(lane >= 8 && lane <= SHORT_LANE);
    const struct lanes lanes = run_lanes(crc, at, lane);
    const __m128i both = _mm_xor_si128(product(lanes.first, lane_factor[2 * (lane / 8)]),
                                       product(lanes.second, lane_factor[lane / 8]));
    return (uint32_t)(CRC_STEP8(0, (uint64_t)_mm_cvtsi128_si64(both)) ^ lanes.third);
}
#endif

/* What is shorter than three lanes. */
CRC_TARGET static inline uint32_t one_lane(uint32_t crc, const uint8_t *at, size_t size)
{
    MQX_ASSERT(at != NULL || size == 0);
    uint64_t lane = crc;

    for (; size >= 8; size -= 8, at += 8) {
        lane = CRC_STEP8(lane, load64(at));
    }
    crc = (uint32_t)lane;
    if (size >= 4) {
        crc = CRC_STEP4(crc, load32(at));
        size -= 4;
        at += 4;
    }
    for (; size > 0; size--, at++) {
        crc = CRC_STEP1(crc, *at);
    }
    return crc;
}

CRC_TARGET uint32_t mqx_crc32c_hardware(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *at = data;

    MQX_ASSERT(hardware);
    MQX_ASSERT(data != NULL || size == 0);
    crc = ~crc;
    for (; size >= 3 * LONG_LANE; size -= 3 * LONG_LANE, at += 3 * LONG_LANE) {
        crc = three_lanes(crc, at, LONG_LANE, long_shift);
    }
    for (; size >= 3 * SHORT_LANE; size -= 3 * SHORT_LANE, at += 3 * SHORT_LANE) {
        crc = three_lanes(crc, at, SHORT_LANE, short_shift);
    }
#ifdef HAVE_PRODUCT_INSTRUCTION
    if (size >= LEAST_IN_LANES) {
        const size_t lane = size / 24 * 8;
        crc = three_short_lanes(crc, at, lane);
        size -= 3 * lane;
        at += 3 * lane;
    }
#endif
    return ~one_lane(crc, at, size);
}
#else
uint32_t mqx_crc32c_hardware(uint32_t crc, const void *data, size_t size)
{
    MQX_ASSERT(hardware);
    return mqx_crc32c_portable(crc, data, size);
}
#endif

bool mqx_crc32c_has_hardware(void)
{
    return hardware;
}

uint32_t mqx_crc32c(uint32_t crc, const void *data, size_t size)
{
    MQX_ASSERT(data != NULL || size == 0);
    MQX_ASSERT(chosen != NULL);
    return chosen(crc, data, size);
}

/* The halves of the 128-bit product folded together: every input bit reaches every output bit. */
static inline uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t mqx_hash64(const void *data, size_t size, uint64_t key)
{
    MQX_ASSERT(data != NULL || size == 0);
    /* About half their bits set: the fractional parts of square roots of primes. */
    const uint64_t c1 = 0x6a09e667f3bcc909u;
    const uint64_t c2 = 0xbb67ae8584caa73bu;
    const uint64_t c3 = 0x3c6ef372fe94f82bu;
    const uint8_t *at = data;
    size_t left = size;
    uint64_t state = mix(key ^ c1, (uint64_t)size ^ c2);

    for (; left >= 16; left -= 16, at += 16) {
        state = mix(load64(at) ^ c1 ^ state, load64(at + 8) ^ c3);
    }
    if (left > 0) {
        uint8_t rest[16] = {0};
        memcpy(rest, at, left);
        state = mix(load64(rest) ^ c2 ^ state, load64(rest + 8) ^ c1);
    }
    state = mix(state ^ c3, key ^ c2);
    return state != 0 ? state : 1;
}
