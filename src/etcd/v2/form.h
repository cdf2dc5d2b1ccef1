/*
 * The parameters of a request of /v2/keys: from the query and, for a PUT or POST, from the body.
 * They are checked in etcd's order, and errors have its texts.
 */
#ifndef VIGIL_ETCD_V2_FORM_H
#define VIGIL_ETCD_V2_FORM_H

#include "base/memory/arena.h"
#include "etcd/v2/error.h"
#include "wire/http/exchange.h"

enum v2_given { V2_NOT_GIVEN, V2_GIVEN_FALSE, V2_GIVEN_TRUE };

struct v2_form {
    struct slice value, prev_value; /* in the arena */
    uint64_t prev_index, wait_index;
    uint64_t ttl_s;
    bool has_ttl;
    bool recursive, wait, dir, stream, refresh, no_value_on_success;
    enum v2_given prev_exist;
};

/* What is wrong with a form. code 0: nothing; otherwise an enum v2_code. */
struct v2_fault {
    int code;
    const char *cause;
};

/* Whether the body of a request may contain parameters, judged by its method. */
bool v2_form_has_body(const struct http_request *request);
struct v2_fault v2_form_read(const struct http_request *request, struct arena *arena,
                             struct v2_form *ret_form);

#endif
