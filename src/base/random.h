/*
 * Pseudo-random numbers that repeat from a seed. Every choice of a simulated run comes from one of
 * these, so the seed determines the run. Not for secrets; see random_secret. One owner, one thread.
 */
#ifndef VIGIL_BASE_RANDOM_H
#define VIGIL_BASE_RANDOM_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

struct random {
    uint64_t state[4];
};

void random_init(struct random *random, uint64_t seed);

uint64_t random_u64(struct random *random);

/* Uniform over [0, below); below is not 0. */
uint64_t random_below(struct random *random, uint64_t below);

/* Uniform over [from, to], both included. */
int64_t random_between(struct random *random, int64_t from, int64_t to);

/* True with probability times / out_of. */
bool random_chance(struct random *random, uint32_t times, uint32_t out_of);

void random_fill(struct random *random, void *to, size_t len);

/* A seed from the system, when none was given. */
uint64_t random_seed_system(void);

/* Unpredictable bytes from the system, for salts and tokens. At most 256. */
void random_secret(void *to, size_t len);

#endif
