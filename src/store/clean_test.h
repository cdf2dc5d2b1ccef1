/* Runs a cleaning to its end, for tests. */
#ifndef VIGIL_STORE_CLEAN_TEST_H
#define VIGIL_STORE_CLEAN_TEST_H

#include "store/store.h"
#include "store/upkeep.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Cleans like the engine, with this many moves at a time; the caller forgets the old segment. */
static inline void clean_to_end(struct store *store, struct upkeep *upkeep,
                                struct relocation *relocation, size_t max)
{
    for (bool done = false; !done;) {
        for (bool moved = false; !moved;)
            assert_int_equal(store_relocate(store, relocation, max, &moved), ST_OK);
        assert_int_equal(upkeep_clean_step(upkeep, relocation, &done), ST_OK);
    }
}

#endif
