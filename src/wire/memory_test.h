/* For tests: the memory that one connection may use, as an account of a budget. */
#ifndef VIGIL_WIRE_MEMORY_TEST_H
#define VIGIL_WIRE_MEMORY_TEST_H

#include "base/memory/budget.h"

#include <stdlib.h>

struct test_memory {
    struct budget *budget;   /* NULL: there is no limit */
    struct account *account; /* a reference */
};

/* One account gets less than half of the limit, unless that is 256 KiB or less. */
static inline void test_memory_init(struct test_memory *memory, size_t limit)
{
    if (budget_new(limit, &memory->budget) != ST_OK ||
        account_new(memory->budget, &memory->account) != ST_OK)
        abort();
}

/* After everything that was charged: asserts that all was released. */
static inline void test_memory_fini(struct test_memory *memory)
{
    account_unref(memory->account);
    budget_free(memory->budget);
}

#endif
