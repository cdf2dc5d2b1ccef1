#include "cmd/ctl/live/top_server.h"

#include "cmd/ctl/session.h"

bool top_server_init(struct top_server *server, struct ctl *ctl, const char *endpoint,
                     int *ret_exit)
{
    *server = (struct top_server){.endpoint = endpoint};
    server->client = ctl_client_of(ctl, endpoint, ret_exit);
    if (!server->client)
        return false;
    server->fetch = fetch_new(ctl, endpoint, &server->metrics_error);
    return true;
}

void top_server_fini(struct top_server *server)
{
    vigil_call_free(server->status_call);
    vigil_client_free(server->client);
    fetch_free(server->fetch);
    metrics_fini(&server->older);
    metrics_fini(&server->now);
}

static void on_status(vigil_call *call, void *user)
{
    struct top_server *server = user;
    const vigil_status_response *response = vigil_status_result(call);
    server->status_done = true;
    if (response)
        top_status_read(&server->status, response);
    else
        top_status_fail(&server->status, vigil_call_error(call)->text);
}

void top_server_start(struct top_server *server)
{
    if (server->fetch)
        fetch_start(server->fetch);
    if (server->status_call && !server->status_done)
        return;
    vigil_call_free(server->status_call);
    server->status_done = false;
    server->status_call = vigil_status(server->client);
    if (vigil_call_start(server->status_call, on_status, server) != VIGIL_OK)
        server->status_done = true;
}

bool top_server_is_read(const struct top_server *server)
{
    return server->status_done && !(server->fetch && fetch_is_running(server->fetch));
}

void top_server_take(struct top_server *server)
{
    struct metrics page = {0};
    if (!server->status_done && (server->status.known || !*server->status.error))
        top_status_fail(&server->status, "no answer yet");
    if (!server->fetch || fetch_is_running(server->fetch))
        return;
    if (!fetch_take(server->fetch, &page, &server->metrics_error)) {
        metrics_fini(&server->now);
        return;
    }
    server->metrics_error = (vigil_error){0};
    metrics_fini(&server->older);
    server->older = server->now;
    server->now = page;
}

bool top_server_has_failed(const struct top_server *server)
{
    return !server->status.known && !server->now.time_ns;
}

void top_server_report(const struct top_server *server, double wall_s, struct top_report *report)
{
    top_report_make(report, &server->status, &server->older, &server->now, wall_s);
}
