#include "base/random.h"

#include <string.h>
#include <sys/random.h>

/* SplitMix64 turns any seed, including 0, into a usable state. */
static uint64_t seed_step(uint64_t *seed)
{
    uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void random_init(struct random *random, uint64_t seed)
{
    for (size_t i = 0; i < COUNT_OF(random->state); i++)
        random->state[i] = seed_step(&seed);
}

static uint64_t rotate_left(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

/* xoshiro256**. */
uint64_t random_u64(struct random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t random_below(struct random *random, uint64_t below)
{
    assert(below > 0);
    /* Draws from the incomplete end of the range would favour small numbers: draw again. */
    uint64_t ragged = -below % below;
    for (;;) {
        uint64_t x = random_u64(random);
        if (x >= ragged)
            return x % below;
    }
}

int64_t random_between(struct random *random, int64_t from, int64_t to)
{
    assert(from <= to);
    uint64_t width = (uint64_t)to - (uint64_t)from + 1;
    uint64_t offset = width ? random_below(random, width) : random_u64(random);
    return (int64_t)((uint64_t)from + offset);
}

bool random_chance(struct random *random, uint32_t times, uint32_t out_of)
{
    return random_below(random, out_of) < times;
}

void random_fill(struct random *random, void *to, size_t len)
{
    uint8_t *at = to;
    while (len > 0) {
        uint64_t x = random_u64(random);
        size_t n = size_min(len, sizeof(x));
        memcpy(at, &x, n);
        at += n;
        len -= n;
    }
}

uint64_t random_seed_system(void)
{
    uint64_t seed;
    random_secret(&seed, sizeof(seed));
    return seed;
}

void random_secret(void *to, size_t len)
{
    assert(len <= 256);
    ssize_t got = getrandom(to, len, 0);
    assert(got == (ssize_t)len); /* reads of so few bytes are never short */
}
