/*
 * bcrypt, as etcd stores passwords ($2a$). Pure functions that take tens of milliseconds: never on
 * a loop or the writer's thread, and as many at a time as whoever calls them allows.
 */
#ifndef VIGIL_AUTH_PASSWORD_H
#define VIGIL_AUTH_PASSWORD_H

#include "base/slice.h"
#include "base/status.h"

enum {
    AUTH_BCRYPT_COST_MIN = 4,
    AUTH_BCRYPT_COST_MAX = 31,
    AUTH_BCRYPT_COST_DEFAULT = 10,
    AUTH_SALT_BYTES = 16,
    AUTH_HASH_BYTES = 60,
    AUTH_PASSWORD_BYTES_MAX = 72, /* bcrypt sees no more */
};

/*
 * Writes the hash, without a NUL. The salt comes from a secure source. ST_INVALID for a password
 * that is too long, as in etcd, or has a NUL, behind which bcrypt would see nothing.
 */
MUST_CHECK
enum status auth_password_hash(struct slice password, const uint8_t salt[AUTH_SALT_BYTES],
                               unsigned cost, uint8_t ret_hash[AUTH_HASH_BYTES]);

/* ST_AUTH_FAILED: not that password, or no hash that could be one's; it takes as long. */
MUST_CHECK
enum status auth_password_check(struct slice password, struct slice hash);

#endif
