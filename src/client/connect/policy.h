/*
 * What an error that a server answers with says about the server, and about the call. Everything
 * that has several endpoints decides by this table whether to leave one, and whether a call that
 * may change something can be sent again.
 */
#ifndef VIGIL_CLIENT_CONNECT_POLICY_H
#define VIGIL_CLIENT_CONNECT_POLICY_H

#include "base/slice.h"
#include "base/status.h"

struct error_policy {
    bool leaves;      /* another endpoint may do better: see channel_avoid */
    bool is_not_done; /* the server has certainly done nothing: any call may be sent to another one
                       */
};

struct error_policy error_policy_of(enum grpc_code code, struct slice text);

#endif
