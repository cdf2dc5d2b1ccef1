/* A few language helpers that every file may use. Nothing here has state. */
#ifndef VIGIL_BASE_MACROS_H
#define VIGIL_BASE_MACROS_H

#include <assert.h>
#include <stddef.h>

#ifdef NDEBUG
#error "asserts stay compiled in: do not define NDEBUG"
#endif

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NEVER_INLINE __attribute__((noinline))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* AUTO(f) T v: calls f(&v) when v leaves scope. */
#define AUTO(cleanup_fn) __attribute__((cleanup(cleanup_fn)))

/* TAKE(p): the value of p, which becomes NULL: ownership moves out. */
#define TAKE(pointer)                                 \
    ({                                                \
        __typeof__(pointer) *take_from_ = &(pointer); \
        __typeof__(pointer) taken_ = *take_from_;     \
        *take_from_ = NULL;                           \
        taken_;                                       \
    })

/* Defines name##p, the cleanup function for AUTO, over a free or unref function that accepts NULL.
 */
#define DEFINE_CLEANUP(type, name)           \
    static inline void name##p(type *object) \
    {                                        \
        name(*object);                       \
    }

#define CONTAINER_OF(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Moves a state machine to its next state. `moves` has a word for each state, with a bit for each
 * state that may follow. A macro, so that a failed assertion names the line of the wrong move. */
#define STATE_MOVE(state, moves, next)             \
    do {                                           \
        assert((moves)[(state)] & (1u << (next))); \
        (state) = (next);                          \
    } while (0)

/* TRY(x): returns the status of x to the caller unless it is ST_OK. */
#define TRY(expression)                         \
    do {                                        \
        enum status try_status_ = (expression); \
        if (UNLIKELY(try_status_ != ST_OK))     \
            return try_status_;                 \
    } while (0)

static inline size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

static inline size_t align_up(size_t n, size_t power_of_two)
{
    return (n + power_of_two - 1) & ~(power_of_two - 1);
}

/* The architecture in Go's words, which etcd and Kubernetes print. */
#if defined(__x86_64__)
#define ARCHITECTURE "amd64"
#elif defined(__aarch64__)
#define ARCHITECTURE "arm64"
#else
#define ARCHITECTURE "unknown"
#endif

#endif
