/*
 * Numbers that repeat from a seed. Every choice a simulated run makes comes from one of these, so
 * the seed is the run. Not for secrets, which are random_secret's. One owner, one thread.
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

/* Evenly spread over [0, below); below is not 0. */
uint64_t random_below(struct random *random, uint64_t below);

/* Evenly spread over [from, to], both included. */
int64_t random_between(struct random *random, int64_t from, int64_t to);

/* True `times` in `out_of` draws. */
bool random_chance(struct random *random, uint32_t times, uint32_t out_of);

void random_fill(struct random *random, void *to, size_t len);

/* A seed from the system, for when none was given. */
uint64_t random_seed_system(void);

/* Bytes from the system that nobody can guess: salts and tokens. At most 256 of them. */
void random_secret(void *to, size_t len);

#endif
