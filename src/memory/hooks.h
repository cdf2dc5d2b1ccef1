/*
 * The memory functions of libvigil and libvigil-kube, which a program may replace with
 * vigil_set_allocator. libvigil has the only copy of them; libvigil-kube, which may be of another
 * version, reads them through vigil_private_hooks. So neither the function nor the struct changes:
 * what is needed in addition gets another function.
 *
 *     libvigil-kube                     libvigil
 *     malloc ──► wrap.c ── hooks ──►    hooks.c  ◄── vigil_set_allocator
 *                                          ▲
 *                          malloc ──► wrap.c
 *
 * They are set before either library is used, and are then read on every thread.
 */
#ifndef MEMORY_HOOKS_H
#define MEMORY_HOOKS_H

#include <stddef.h>

/* All of them, or none: then the functions of the C library are used. */
struct memory_hooks {
    void *(*allocate)(size_t bytes);
    void *(*resize)(void *memory, size_t bytes);
    void (*release)(void *memory);
};

/* A symbol of libvigil that no installed header declares. */
__attribute__((visibility("default"))) const struct memory_hooks *vigil_private_hooks(void);

#endif
