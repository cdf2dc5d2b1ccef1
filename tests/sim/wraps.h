/*
 * The functions of the system and of src/io that a simulation replaces, by the linker's --wrap
 * (CMakeLists.txt). Outside a simulation they are the real ones.
 */
#ifndef VIGIL_TESTS_SIM_WRAPS_H
#define VIGIL_TESTS_SIM_WRAPS_H

#include "simulated/sim.h"

/* The network and clock of everything that asks for the system's. */
void wraps_begin(struct sim *sim, uint64_t seed);
void wraps_end(void);

#endif
