/*
 * bcrypt, as etcd stores passwords ($2a$). Pure functions that take tens of milliseconds, so they
 * never run on a loop or on the writer's thread. The caller limits how many run at a time.
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
    AUTH_PASSWORD_BYTES_MAX = 72, /* bcrypt ignores further bytes */
};

/*
 * Writes the hash, without a NUL. The salt comes from a secure source. ST_INVALID for a password
 * that is too long, as in etcd, or contains a NUL, after which bcrypt would ignore the rest.
 */
MUST_CHECK
enum status auth_password_hash(struct slice password, const uint8_t salt[AUTH_SALT_BYTES],
                               unsigned cost, uint8_t ret_hash[AUTH_HASH_BYTES]);

/* ST_AUTH_FAILED: a wrong password or an invalid hash; both take the same time. */
MUST_CHECK
enum status auth_password_check(struct slice password, struct slice hash);

#endif
