#include "cost.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    STEPS_PER_BYTE = 500,
    MEMORY_FIXED = 4 << 20,
    MEMORY_PER_BYTE = 1024,
    STACK_BYTES = 256 << 10,
    SLOW_NS_PER_STEP = 8,   /* tenfold what any corpus takes with sanitizers */
    PUMP_FIRST = COST_LONG, /* lengths: this, and four times as long each */
    PUMP_LAST = COST_IS_TIMED ? 256 << 10 : COST_LONG,
    PUMP_PARTS = 7, /* parts of an input that are repeated: all, halves, quarters */
    PUMP_INPUT_MAX = 1 << 10,
    GROWTH_MAX = 6, /* limit on the growth with a fourfold length */
};
/* Growth below these is ignored. */
static const uint64_t fast_ns = 100000000, fast_steps = 20000000;
static const uint64_t slow_ns = 300000000;

static struct cost most;
/* Set on the thread that runs inputs: steps of libFuzzer's own threads do not count. */
static _Thread_local bool counting;
static uint64_t steps;
static const char *stack_base, *stack_low;
static _Atomic int64_t memory_now, memory_peak;

/* -- Counting: called by what the compiler has put in, and by the allocator -- */

#ifdef __clang__
#define UNCOUNTED __attribute__((no_sanitize("coverage", "address")))
#else
#define UNCOUNTED __attribute__((no_sanitize_coverage, no_sanitize_address))
#endif

/* libFuzzer defines this function too, and does nothing in it: the linker puts ours in its place.
 */
#ifdef VIGIL_LIBFUZZER
#define COUNT_STEP __wrap___sanitizer_cov_trace_pc
#else
#define COUNT_STEP __sanitizer_cov_trace_pc
#endif

void COUNT_STEP(void);
UNCOUNTED void COUNT_STEP(void)
{
    if (!counting)
        return;
    const char *here = __builtin_frame_address(0);
    steps++;
    if (here < stack_low)
        stack_low = here;
}

__attribute__((weak)) int __sanitizer_install_malloc_and_free_hooks(
    void (*allocated)(const volatile void *, size_t), void (*freed)(const volatile void *));
__attribute__((weak)) size_t __sanitizer_get_allocated_size(const volatile void *p);

static void on_malloc(const volatile void *p, size_t bytes)
{
    (void)p;
    memory_now += (int64_t)bytes;
    if (memory_now > memory_peak)
        memory_peak = memory_now;
}

static void on_free(const volatile void *p)
{
    if (p)
        memory_now -= (int64_t)__sanitizer_get_allocated_size(p);
}

static void begin(void)
{
    static bool hooked;
    if (!hooked && __sanitizer_install_malloc_and_free_hooks)
        __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
    hooked = true;
    memory_now = memory_peak = 0;
    counting = true;
    steps = 0;
    stack_base = stack_low = __builtin_frame_address(0);
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* -- One input -- */

static void check(const char *what, uint64_t took, uint64_t limit, size_t size)
{
    if (took <= limit)
        return;
    fprintf(stderr, "cost: an input of %zu bytes takes %llu %s; at most %llu\n", size,
            (unsigned long long)took, what, (unsigned long long)limit);
    abort();
}

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
    return value ? value : otherwise;
}

static void note(struct cost cost, size_t size)
{
    if (size < COST_LONG)
        return;
    uint64_t each = cost.steps / size;
    most.steps = each > most.steps ? each : most.steps;
    most.cpu_ns = cost.cpu_ns > most.cpu_ns ? cost.cpu_ns : most.cpu_ns;
    most.memory_bytes =
        cost.memory_bytes > most.memory_bytes ? cost.memory_bytes : most.memory_bytes;
    most.stack_bytes = cost.stack_bytes > most.stack_bytes ? cost.stack_bytes : most.stack_bytes;
}

struct cost cost_most(void)
{
    return most;
}

struct cost cost_run(cost_input *input, const struct cost_limits *limits, const uint8_t *data,
                     size_t size)
{
    struct cost cost;
    begin();
    uint64_t from = cpu_ns();
    (void)input(data, size);
    cost.cpu_ns = cpu_ns() - from;
    cost.steps = steps;
    cost.memory_bytes = (size_t)memory_peak;
    cost.stack_bytes = (size_t)(stack_base - stack_low);
    uint64_t most_steps = or_default(limits->steps_per_byte, STEPS_PER_BYTE) * size;
    check("steps", cost.steps, COST_STEPS_FIXED + most_steps, size);
    if (COST_IS_TIMED)
        check("ns of the processor", cost.cpu_ns, slow_ns + SLOW_NS_PER_STEP * most_steps, size);
    check("bytes of memory", cost.memory_bytes,
          or_default(limits->memory_bytes, MEMORY_FIXED + MEMORY_PER_BYTE * size), size);
    check("bytes of stack", cost.stack_bytes, or_default(limits->stack_bytes, STACK_BYTES), size);
    note(cost, size);
    return cost;
}

/* -- Longer ones -- */

/* The bytes from `from` to `to` of an input again and again, until it is so long. */
static uint8_t *repeat(const uint8_t *data, size_t size, size_t from, size_t to, size_t wanted,
                       size_t *ret_size)
{
    size_t part = to - from, times = size < wanted ? (wanted - size) / part : 0;
    uint8_t *made = malloc(size + times * part);
    if (!made)
        abort();
    memcpy(made, data, to);
    for (size_t i = 0; i < times; i++)
        memcpy(made + to + i * part, data + from, part);
    memcpy(made + to + times * part, data + to, size - to);
    *ret_size = size + times * part;
    return made;
}

static struct cost run_repeated(cost_input *input, const struct cost_limits *limits,
                                const uint8_t *data, size_t size, size_t from, size_t to,
                                size_t wanted)
{
    size_t len;
    uint8_t *made = repeat(data, size, from, to, wanted, &len);
    struct cost cost = cost_run(input, limits, made, len);
    free(made);
    return cost;
}

static bool grows(uint64_t before, uint64_t now)
{
    return now / GROWTH_MAX > before;
}

/* The least time of several runs: other work on the machine slows down some of them. */
static uint64_t least_ns(cost_input *input, const struct cost_limits *limits, const uint8_t *data,
                         size_t size, size_t from, size_t to, size_t wanted)
{
    enum { RUNS = 3 };
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < RUNS; i++) {
        struct cost cost = run_repeated(input, limits, data, size, from, to, wanted);
        least = cost.cpu_ns < least ? cost.cpu_ns : least;
    }
    return least;
}

/* As long as it grows too fast it is made longer; a limit of ours that it meets ends that. */
static void pump_part(cost_input *input, const struct cost_limits *limits, const uint8_t *data,
                      size_t size, size_t from, size_t to)
{
    struct cost last = run_repeated(input, limits, data, size, from, to, PUMP_FIRST);
    for (size_t wanted = 4 * PUMP_FIRST; wanted <= PUMP_LAST; wanted *= 4) {
        struct cost now = run_repeated(input, limits, data, size, from, to, wanted);
        bool steps_grow = grows(last.steps, now.steps), time_grows = grows(last.cpu_ns, now.cpu_ns);
        if (!steps_grow && !time_grows)
            return;
        last = now;
        if (wanted < PUMP_LAST)
            continue;
        if (time_grows && now.cpu_ns > fast_ns)
            time_grows = grows(least_ns(input, limits, data, size, from, to, wanted / 4),
                               least_ns(input, limits, data, size, from, to, wanted));
        if ((steps_grow && now.steps > fast_steps) || (time_grows && now.cpu_ns > fast_ns)) {
            fprintf(stderr,
                    "cost: with bytes %zu to %zu repeated it grows faster than its length: %zu "
                    "bytes take %llu steps, %llu us\n",
                    from, to, wanted, (unsigned long long)now.steps,
                    (unsigned long long)now.cpu_ns / 1000);
            abort();
        }
    }
}

void cost_pump(cost_input *input, const struct cost_limits *limits, const uint8_t *data,
               size_t size)
{
    if (size < 2 || size > PUMP_INPUT_MAX)
        return;
    for (size_t part = 0; part < PUMP_PARTS; part++) {
        size_t parts = part < 1 ? 1 : part < 3 ? 2 : 4, at = part - (parts - 1);
        /* The first byte often says what the others are. */
        size_t from = 1 + (size - 1) * at / parts, to = 1 + (size - 1) * (at + 1) / parts;
        if (to > from)
            pump_part(input, limits, data, size, from, to);
    }
}

int cost_input_of_fuzzer(const uint8_t *data, size_t size)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * 16777619u;
    (void)cost_run(fuzz_input, &fuzz_limits, data, size);
    if (hash % 16 == 0)
        cost_pump(fuzz_input, &fuzz_limits, data, size);
    return 0;
}
