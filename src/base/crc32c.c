#include "base/crc32c.h"

#include <pthread.h>
#include <stdatomic.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

typedef uint32_t (*crc32c_fn)(uint32_t crc, struct slice bytes);

/* -- Tables: eight bytes per step; table k is the effect of a byte followed by k zero bytes -- */

enum { POLYNOMIAL_REFLECTED = 0x82f63b78, SLICES = 8 };

static uint32_t tables[SLICES][256];

static void build_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? (uint32_t)POLYNOMIAL_REFLECTED : 0);
        tables[0][byte] = crc;
    }
    for (int k = 1; k < SLICES; k++) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t before = tables[k - 1][byte];
            tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
        }
    }
}

static uint32_t step_eight(uint32_t crc, const uint8_t *at)
{
    uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                          (uint32_t)at[3] << 24);
    return tables[7][low & 0xff] ^ tables[6][(low >> 8) & 0xff] ^ tables[5][(low >> 16) & 0xff] ^
           tables[4][low >> 24] ^ tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^
           tables[0][at[7]];
}

uint32_t crc32c_portable(uint32_t crc, struct slice bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, build_tables);

    crc = ~crc;
    const uint8_t *at = bytes.ptr;
    size_t left = bytes.len;
    for (; left >= 8; at += 8, left -= 8)
        crc = step_eight(crc, at);
    for (; left; at++, left--)
        crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 0xff];
    return ~crc;
}

/* -- Instructions -- */

#if defined(__x86_64__)

bool crc32c_has_hardware(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

/*
 * The instruction takes three cycles, and an independent one may begin in every cycle: so three
 * lanes are computed side by side. The results of the first two are then shifted over the lanes
 * that follow them: multiplied by a power of x, to which the reduction by the instruction itself
 * contributes 33.
 */
enum { LANE_BYTES = 64 };
static const uint32_t over_two_lanes = 0x0d3b6092, /* x^(2 * 512 - 33), lowest bit first */
    over_one_lane = 0x9e4addf8;                    /* x^(512 - 33) */

__attribute__((target("sse4.2"))) static inline uint64_t step_word(uint64_t crc, const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return _mm_crc32_u64(crc, word);
}

__attribute__((target("sse4.2,pclmul"))) static inline uint64_t times(uint64_t crc, uint32_t power)
{
    __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc), _mm_cvtsi32_si128((int)power), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

__attribute__((target("sse4.2,pclmul"))) static inline uint64_t step_lanes(uint64_t crc,
                                                                           const uint8_t *at)
{
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < LANE_BYTES; i += 8) {
        crc = step_word(crc, at + i);
        second = step_word(second, at + LANE_BYTES + i);
        third = step_word(third, at + 2 * LANE_BYTES + i);
    }
    return third ^ _mm_crc32_u64(0, times(crc, over_two_lanes) ^ times(second, over_one_lane));
}

__attribute__((target("sse4.2,pclmul"))) uint32_t crc32c_hardware(uint32_t crc, struct slice bytes)
{
    uint64_t wide = (uint32_t)~crc;
    const uint8_t *at = bytes.ptr;
    size_t left = bytes.len;
    for (; left >= 3 * LANE_BYTES; at += 3 * LANE_BYTES, left -= 3 * LANE_BYTES)
        wide = step_lanes(wide, at);
    for (; left >= 8; at += 8, left -= 8)
        wide = step_word(wide, at);
    uint32_t narrow = (uint32_t)wide;
    for (; left; at++, left--)
        narrow = _mm_crc32_u8(narrow, *at);
    return ~narrow;
}

#elif defined(__aarch64__)

/* The number is part of the kernel's interface; old headers lack the name. */
enum { HWCAP_CRC32_BIT = 1 << 7 };

bool crc32c_has_hardware(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_CRC32_BIT) != 0;
}

/* Inline assembly, because the header's functions exist only when every target processor has it. */
static inline uint32_t step_word(uint32_t crc, uint64_t word)
{
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    return crc;
}

static inline uint32_t step_byte(uint32_t crc, uint32_t byte)
{
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(byte));
    return crc;
}

uint32_t crc32c_hardware(uint32_t crc, struct slice bytes)
{
    crc = ~crc;
    const uint8_t *at = bytes.ptr;
    size_t left = bytes.len;
    for (; left >= 8; at += 8, left -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        crc = step_word(crc, word);
    }
    for (; left; at++, left--)
        crc = step_byte(crc, *at);
    return ~crc;
}

#else

bool crc32c_has_hardware(void)
{
    return false;
}

uint32_t crc32c_hardware(uint32_t crc, struct slice bytes)
{
    return crc32c_portable(crc, bytes);
}

#endif

/* -- Choosing an implementation: on the first call, once for the process -- */

static uint32_t choose(uint32_t crc, struct slice bytes);

static _Atomic(crc32c_fn) chosen = choose;

static uint32_t choose(uint32_t crc, struct slice bytes)
{
    crc32c_fn best = crc32c_has_hardware() ? crc32c_hardware : crc32c_portable;
    atomic_store_explicit(&chosen, best, memory_order_relaxed);
    return best(crc, bytes);
}

uint32_t crc32c(uint32_t crc, struct slice bytes)
{
    return atomic_load_explicit(&chosen, memory_order_relaxed)(crc, bytes);
}
