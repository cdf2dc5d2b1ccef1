/*
 * The sums that a checkpoint is held to. The sum of a set is that of its entries, each hashed by
 * itself, in 64 bits that wrap round: so it can be kept while entries come and go, in any order.
 * For accidents of disks; it is no secret.
 */
#ifndef VIGIL_STORE_BACKEND_SUM_H
#define VIGIL_STORE_BACKEND_SUM_H

#include "store/backend/tables.h"

/* encoded: backend_version_encode. */
uint64_t sum_of_version(struct backend_version_id id, struct slice encoded);
uint64_t sum_of_row(const struct row *row);
uint64_t sum_of_segment(const struct backend_segment *segment);
/* All numbers but BACKEND_SUM. */
uint64_t sum_of_numbers(const struct backend_numbers *numbers);

#endif
