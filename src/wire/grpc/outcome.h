/* How a call ended, as its client sees it, and the tables by which gRPC derives it from HTTP. */
#ifndef VIGIL_WIRE_GRPC_OUTCOME_H
#define VIGIL_WIRE_GRPC_OUTCOME_H

#include "wire/h2/frame.h"
#include "wire/h2/headers.h"

struct grpc_outcome {
    enum grpc_code code;
    struct slice text; /* borrowed until the function returns that gets the outcome */
    bool from_peer;    /* the server's own status, not one that was derived here */
    bool unprocessed;  /* the server certainly did not process the call */
    /* Why this side ended the call: ST_LIMIT, a message is larger than receive_max; ST_NOMEM;
     * otherwise ST_OK. */
    enum status reason;
};

/* The code of a response that has this HTTP status and no status of gRPC. */
enum grpc_code grpc_code_from_http(unsigned status);

/* The code of a stream that the server has reset. */
enum grpc_code grpc_code_from_reset(enum h2_error error);

/*
 * The status in the trailers of a response, or in the head of one that has nothing else. Its text
 * is decoded into room. The status is Unknown if grpc-status is not a number that gRPC knows.
 * False: there is none.
 */
enum { GRPC_STATUS_ROOM = 16 * 1024 }; /* as much as a header list can hold */
bool grpc_status_read(const struct h2_headers *headers, uint8_t room[GRPC_STATUS_ROOM],
                      struct grpc_outcome *ret_outcome);

#endif
