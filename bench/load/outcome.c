#include "load/outcome.h"

#include <stdio.h>

void bench_outcome_note(struct bench_outcome *outcome, const struct bench_verdict *verdict)
{
    outcome->errors++;
    if (outcome->first_error[0])
        return;
    if (verdict->grpc_status >= 0)
        snprintf(outcome->first_error, sizeof(outcome->first_error), "grpc-status %d %s",
                 verdict->grpc_status, verdict->message);
    else if (verdict->http_status >= 0)
        snprintf(outcome->first_error, sizeof(outcome->first_error), "HTTP status %d",
                 verdict->http_status);
    else
        snprintf(outcome->first_error, sizeof(outcome->first_error), "%s", verdict->message);
}
