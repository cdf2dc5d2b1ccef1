/*
 * Work of operators under load: snapshots, hashes and defragmentation. A snapshot has to contain
 * what the history says at its revision, and a hash of the same revisions is always the same.
 */
#ifndef VIGIL_TESTS_SIM_MAINTENANCE_H
#define VIGIL_TESTS_SIM_MAINTENANCE_H

#include "base/random.h"

#include <vigil/vigil.h>

void maintenance_begin(void);
void maintenance_end(void);

/* One of them. Inside an actor. */
void maintenance_do(vigil_client *client, struct random *random);
/* Compares the snapshots of revisions that the history has by now. */
void maintenance_check_known(void);

#endif
