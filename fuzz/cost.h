/*
 * What an input may cost. Every harness runs under these limits, in libFuzzer and in the tests of
 * its corpus.
 *
 *     FUZZ_INPUT(.steps_per_byte = 500)
 *     {
 *         … data and size …
 *         return 0;
 *     }
 *
 * defines LLVMFuzzerTestOneInput. An input fails that takes more steps than COST_STEPS_FIXED and so
 * many for each of its bytes, more memory than its limit, more stack, or very long. A step is a
 * branch of our own code, which builds for fuzzing count (VIGIL_FUZZ, or VIGIL_COUNT with any
 * compiler); memory is counted under the address sanitizer.
 *
 * cost_pump looks for work that grows faster than its input: it repeats parts of an input up to a
 * quarter of a megabyte, and fails when each fourfold length takes much more than four times as
 * long. It goes by steps where they are counted and always by time of the processor, which also
 * sees what libraries do. Every file of a corpus is pumped, and one in sixteen short inputs of a
 * fuzzer.
 *
 * The thread sanitizer is there for races, and its own time is not linear: for a search such as
 * memmem it marks all bytes that might be read, however early the search ends. With it time does
 * not count, and inputs are repeated only up to COST_LONG bytes.
 */
#ifndef VIGIL_FUZZ_COST_H
#define VIGIL_FUZZ_COST_H

#include <stddef.h>
#include <stdint.h>

enum { COST_STEPS_FIXED = 1000000 };

#ifdef __SANITIZE_THREAD__
enum { COST_IS_TIMED = 0 };
#else
enum { COST_IS_TIMED = 1 };
#endif

/* Those that are 0 have their defaults. */
struct cost_limits {
    uint64_t steps_per_byte; /* 500 */
    size_t memory_bytes;     /* 4 MiB and 1 KiB for each byte; else this, whatever the size */
    size_t stack_bytes;      /* 256 KiB, as compiled with sanitizers */
};

typedef int cost_input(const uint8_t *data, size_t size);

/* What one input took. */
struct cost {
    uint64_t steps, cpu_ns;
    size_t memory_bytes; /* at its peak */
    size_t stack_bytes;
};

enum { COST_LONG = 4 << 10 };

/* Runs one input and ends the process if it costs too much. */
struct cost cost_run(cost_input *input, const struct cost_limits *limits, const uint8_t *data,
                     size_t size);

/* The most of each that an input of COST_LONG bytes and more has taken; of steps, for each byte. */
struct cost cost_most(void);

/* Runs longer inputs made from this one. */
void cost_pump(cost_input *input, const struct cost_limits *limits, const uint8_t *data,
               size_t size);

/* The harness that this program was linked with. */
extern cost_input LLVMFuzzerTestOneInput;
extern cost_input fuzz_input;
extern const struct cost_limits fuzz_limits;

int cost_input_of_fuzzer(const uint8_t *data, size_t size);

#define FUZZ_INPUT(...)                                          \
    const struct cost_limits fuzz_limits = {__VA_ARGS__};        \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) \
    {                                                            \
        return cost_input_of_fuzzer(data, size);                 \
    }                                                            \
    int fuzz_input(const uint8_t *data, size_t size)

#endif
