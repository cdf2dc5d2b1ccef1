/*
 * A file with flags that would otherwise be typed at every command:
 *
 *     # ~/.config/vigil/profiles.yaml
 *     prod:
 *       endpoints: [https://a.example:2379, https://b.example:2379]
 *       cacert: ca.pem              # relative to this file; ~/ is the home directory
 *       user: root
 *       password: secret            # the file must then be readable by its owner only
 *
 * The names are those of the flags; a flag or a variable of the environment that was given wins.
 * Everything is in the caller's arena.
 */
#ifndef VIGIL_CMD_CTL_PROFILE_PROFILE_H
#define VIGIL_CMD_CTL_PROFILE_PROFILE_H

#include "base/error.h"
#include "base/memory/arena.h"
#include "base/options/options.h"

enum { PROFILE_FILE_BYTES_MAX = 1 << 20 };

struct profile_entry {
    const char *name, *value;
    bool secret; /* a password or a token */
};

struct profile {
    const char *name;
    struct profile_entry *entries;
    size_t count;
};

struct profiles {
    const char *path;
    struct profile *all; /* in the order of the file */
    size_t count;
};

/* $VIGIL_PROFILES, or vigil/profiles.yaml in $XDG_CONFIG_HOME or ~/.config. NULL: there is no home
 * directory, or no memory. */
const char *profiles_path(struct arena *arena);

/*
 * Reads a file. ST_NOT_FOUND: it does not exist. ST_INVALID: it contains something else, or a
 * secret that others could read; ST_LIMIT: it is too large; ST_IO, ST_NOMEM. *error says what to
 * do, with the path.
 */
MUST_CHECK
enum status profiles_read(struct arena *arena, const char *path, struct profiles *ret_profiles,
                          struct error *error);
/* NULL: there is none of that name. */
const struct profile *profiles_find(const struct profiles *profiles, const char *name);

/* Sets what the profile has and neither the command line nor the environment has given. The path is
 * that of profiles_path. ST_INVALID, ST_NOT_FOUND and those of profiles_read, with *error set. */
MUST_CHECK
enum status profile_apply(struct arena *arena, const char *name, struct options *options,
                          struct error *error);

#endif
