/*
 * The value of --auth-token, in etcd's syntax:
 *
 *     simple
 *     jwt,pub-key=FILE,priv-key=FILE,sign-method=RS256,ttl=10m
 *
 * The caller reads the files.
 */
#ifndef VIGIL_AUTH_TOKEN_SETTINGS_H
#define VIGIL_AUTH_TOKEN_SETTINGS_H

#include "base/error.h"
#include "base/slice.h"

enum auth_token_kind { AUTH_TOKEN_SIMPLE, AUTH_TOKEN_JWT };

/* Slices point into the text. */
struct auth_token_settings {
    enum auth_token_kind kind;
    struct slice sign_method;
    struct slice public_key_file, private_key_file; /* empty: none */
    int64_t ttl_s;                                  /* lifetime of a JWT; 300 by default */
};

/* ST_INVALID with an error text: an unknown kind, or an option that is unknown, repeated or without
 * a value. */
MUST_CHECK
enum status auth_token_settings_parse(const char *text, struct auth_token_settings *ret_settings,
                                      struct error *error);

#endif
