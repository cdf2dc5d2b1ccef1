/*
 * What our own allocators tell the sanitizers about their memory, so that mistakes are found in it
 * as they are in memory from malloc. In other builds these functions do nothing.
 */
#ifndef VIGIL_BASE_MEMORY_SANITIZER_H
#define VIGIL_BASE_MEMORY_SANITIZER_H

#include <stddef.h>

/* gcc defines macros, clang has features. */
#ifdef __has_feature
#define SANITIZER_FEATURE(name) __has_feature(name)
#else
#define SANITIZER_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || SANITIZER_FEATURE(address_sanitizer)
#define SANITIZER_ADDRESS 1
#include <sanitizer/asan_interface.h>
#endif
#if SANITIZER_FEATURE(memory_sanitizer)
#define SANITIZER_MEMORY 1
#include <sanitizer/msan_interface.h>
#endif

/* The bytes are free: every access is an error. */
static inline void sanitizer_hide(void *bytes, size_t count)
{
#ifdef SANITIZER_ADDRESS
    __asan_poison_memory_region(bytes, count);
#else
    (void)bytes, (void)count;
#endif
}

/* The bytes can be accessed. */
static inline void sanitizer_show(void *bytes, size_t count)
{
#ifdef SANITIZER_ADDRESS
    __asan_unpoison_memory_region(bytes, count);
#else
    (void)bytes, (void)count;
#endif
}

/* The bytes have been allocated: they can be accessed, and are undefined until they are written. */
static inline void sanitizer_allocated(void *bytes, size_t count)
{
    sanitizer_show(bytes, count);
#ifdef SANITIZER_MEMORY
    __msan_allocated_memory(bytes, count);
#endif
}

#endif
