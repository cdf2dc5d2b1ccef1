/*
 * A custom resource whose definition is made and deleted again and again, in rounds, while it is
 * read through the watch tier. Its objects say in which round they were made.
 *
 * No object of a round is shown by a list before it, by a current list after its definition is
 * gone, or by a watch of another round. A watch of a round ends when its definition is gone.
 */
#ifndef VIGIL_TESTS_SIM_TIER_DEFINITIONS_H
#define VIGIL_TESTS_SIM_TIER_DEFINITIONS_H

#include <stdint.h>

/* An actor that does some rounds, while there are faults. */
void tier_definitions_start(uint64_t seed);
/* Waits until it has ended. */
void tier_definitions_join(void);

#endif
