/* What the library holds in memory, counted through its allocator hook. */
#ifndef VIGIL_TESTS_CLIENT_HEAP_H
#define VIGIL_TESTS_CLIENT_HEAP_H

/* To be called before any other function of the library. */
void heap_count(void);

long heap_bytes(void);
/* The most since heap_mark. */
long heap_bytes_max(void);
void heap_mark(void);

#endif
