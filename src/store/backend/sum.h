/*
 * The sums by which a checkpoint is verified. The sum of a set is the sum of the hashes of its
 * entries, modulo 2^64, so it can be updated when entries are added and removed, in any order. It
 * detects damage by disks; it is not cryptographic.
 */
#ifndef VIGIL_STORE_BACKEND_SUM_H
#define VIGIL_STORE_BACKEND_SUM_H

#include "store/backend/tables.h"

/* encoded: the result of backend_version_encode. */
uint64_t sum_of_version(struct backend_version_id id, struct slice encoded);
uint64_t sum_of_row(const struct row *row);
uint64_t sum_of_segment(const struct backend_segment *segment);
/* All numbers except BACKEND_SUM. */
uint64_t sum_of_numbers(const struct backend_numbers *numbers);

#endif
