/* Shared by the parts of OpenSSL: see msan.cmake. */
#ifndef VIGIL_TESTS_MSAN_OPENSSL_H
#define VIGIL_TESTS_MSAN_OPENSSL_H

#include <sanitizer/msan_interface.h>
#include <stddef.h>

/* Names that the linker makes from OpenSSL's. */
#define REAL(name) __real_##name
#define WRAP(name) __wrap_##name
/* For functions that OpenSSL calls: the arguments of their callers are taken for defined. */
#define NOT_INSTRUMENTED __attribute__((no_sanitize("memory")))

/* A call of OpenSSL. What it passes to the C library looks undefined. */
#define CALL(type, function, ...)                   \
    ({                                              \
        __msan_scoped_disable_interceptor_checks(); \
        type result_ = function(__VA_ARGS__);       \
        __msan_scoped_enable_interceptor_checks();  \
        result_;                                    \
    })

/* Defines a function that only calls OpenSSL's. */
#define PLAIN(type, name, parameters, ...)          \
    type REAL(name) parameters;                     \
    type WRAP(name) parameters;                     \
    type WRAP(name) parameters                      \
    {                                               \
        return CALL(type, REAL(name), __VA_ARGS__); \
    }

/* Results through pointers, which may be NULL. */
static inline void is_defined(const void *bytes, size_t count)
{
    if (bytes)
        __msan_unpoison(bytes, count);
}

static inline void must_be_defined(const void *bytes, size_t count)
{
    if (bytes)
        __msan_check_mem_is_initialized(bytes, count);
}

#endif
