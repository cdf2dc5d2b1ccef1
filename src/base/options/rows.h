/*
 * Rows of a table of flags: the name, the struct and its member, the default, the help. Further
 * members of struct option may follow.
 *
 *     FLAG_BOOL("prefix", get_flags, prefix, "All keys that begin with the key."),
 *     FLAG_INT("max-learners", member_flags, max_learners, "1", "…", BETWEEN(0, 31)),
 */
#ifndef VIGIL_BASE_OPTIONS_ROWS_H
#define VIGIL_BASE_OPTIONS_ROWS_H

#include "base/options/options.h"

#define FLAG_ROW(type, name_, struct_, member, default_, help_, ...)                     \
    {                                                                                    \
        .name = (name_), .kind = OPTION_##type, .fallback = (default_), .help = (help_), \
        .offset = offsetof(struct struct_, member), __VA_ARGS__                          \
    }

/* A bool is false by default, or true. */
#define FLAG_BOOL(name, type, member, ...) FLAG_ROW(BOOL, name, type, member, "false", __VA_ARGS__)
#define FLAG_TRUE(name, type, member, ...) FLAG_ROW(BOOL, name, type, member, "true", __VA_ARGS__)
#define FLAG_INT(name, type, member, ...) FLAG_ROW(INT, name, type, member, __VA_ARGS__)
#define FLAG_SIZE(name, type, member, ...) FLAG_ROW(SIZE, name, type, member, __VA_ARGS__)
#define FLAG_DURATION(name, type, member, ...) FLAG_ROW(DURATION, name, type, member, __VA_ARGS__)
#define FLAG_TEXT(name, type, member, ...) FLAG_ROW(TEXT, name, type, member, __VA_ARGS__)
#define FLAG_LIST(name, type, member, ...) FLAG_ROW(LIST, name, type, member, __VA_ARGS__)
/* Its choices follow the help: "text|json". */
#define FLAG_ENUM(name, type, member, default_, help_, choices_, ...) \
    FLAG_ROW(ENUM, name, type, member, default_, help_, .choices = (choices_), __VA_ARGS__)
#define FLAG_ALIAS(name_, of)             \
    {                                     \
        .name = (name_), .alias_of = (of) \
    }
/* A flag of etcd without effect. Its value is parsed, so that a wrong one is refused, and dropped.
 */
#define FLAG_IGNORED(name_, type, default_, why, ...)                                     \
    {                                                                                     \
        .name = (name_), .kind = OPTION_##type, .fallback = (default_), .ignored = (why), \
        .offset = OPTION_NOWHERE, __VA_ARGS__                                             \
    }
#define BETWEEN(low, high) .min = (low), .max = (high)
#define NOT_NEGATIVE BETWEEN(0, INT64_MAX)

#endif
