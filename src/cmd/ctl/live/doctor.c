/* vigil doctor: examines servers and says what to do. It only reads. */
#include "base/clock.h"
#include "base/xalloc.h"
#include "cmd/ctl/decode/terminal.h"
#include "cmd/ctl/live/checks.h"
#include "cmd/ctl/live/fetch.h"
#include "cmd/ctl/live/live.h"
#include "cmd/ctl/live/tier.h"

enum { SERVERS_MAX = 64 };

/* One server while it is examined. */
struct patient {
    vigil_client *client;
    vigil_call *call; /* owns examined.status */
    struct examined examined;
    bool runs, is_ready; /* runs: it answers over HTTP, although not with its status */
    char page[FINDING_TEXT_BYTES - 64]; /* of /readyz; valid if it runs */
};

struct doctor {
    struct ctl *ctl;
    struct findings findings;
    struct patient *patients;
    size_t count;
};

static void doctor_fini(struct doctor *d)
{
    for (size_t i = 0; i < d->count; i++) {
        vigil_call_free(d->patients[i].call);
        vigil_client_free(d->patients[i].client);
        metrics_fini(&d->patients[i].examined.metrics);
    }
    free(d->patients);
    findings_fini(&d->findings);
}

/* -- One server -- */

static bool has_scheme(const char *endpoint, const char *scheme)
{
    return strncmp(endpoint, scheme, strlen(scheme)) == 0;
}

static void describe(const struct ctl *ctl, struct examined *e)
{
    const struct ctl_globals *g = &ctl->globals;
    const char *host = strstr(e->endpoint, "://");
    bool tls = *g->ca_file || *g->cert_file || !g->insecure_transport || g->insecure_skip_verify;
    host = host ? host + 3 : e->endpoint;
    e->is_plain = has_scheme(e->endpoint, "http://") || (!strstr(e->endpoint, "://") && !tls);
    e->is_local = has_scheme(host, "127.") || has_scheme(host, "localhost") ||
                  has_scheme(host, "[::1]") || has_scheme(e->endpoint, "unix");
    e->wall_s = clock_real_ns(clock_system()) / NS_PER_S;
}

/* The status is not answered: by a server in front of a cluster that does not answer, which says so
 * itself, or by one that does not have etcd's API. */
static void ask_readiness(struct doctor *d, struct patient *p)
{
    vigil_error why;
    struct fetch *fetch = fetch_new(d->ctl, p->examined.endpoint, &why);
    p->runs = fetch && fetch_page(fetch, "/readyz", p->page, sizeof(p->page), &p->is_ready);
    fetch_free(fetch);
}

static void explain_silence(struct doctor *d, struct patient *p)
{
    const char *error = vigil_call_error(p->call)->text;
    if (p->runs && !p->is_ready)
        findings_add(&d->findings, FINDING_BAD, "answer",
                     "The server runs, but cannot do its work; the reason says what to look at.",
                     "it is not ready: %s", p->page);
    else if (p->runs && tier_report_is_of(&p->examined.metrics))
        findings_add(&d->findings, FINDING_GOOD, "answer", NULL,
                     "it is ready, in front of a kube-apiserver");
    else if (p->runs)
        findings_add(&d->findings, FINDING_BAD, "answer",
                     "The server is ready (/readyz), but has not answered this call: see --user, "
                     "and its log.",
                     "%s", error);
    else
        findings_add(&d->findings, FINDING_BAD, "answer",
                     "See whether the server runs, and --endpoints, --cacert and --user. That of a "
                     "watch tier is in --listen-metrics-urls.",
                     "%s", error);
}

/* The first call also makes the connection, so the second one is measured. */
static void ask_status(struct doctor *d, struct patient *p)
{
    for (unsigned i = 0; i < 2; i++) {
        int64_t begin_ns = clock_mono_ns(clock_system());
        vigil_call_free(p->call);
        p->call = vigil_status(p->client);
        if (vigil_call_run(p->call) != VIGIL_OK) {
            ask_readiness(d, p);
            return;
        }
        p->examined.latency_ns = clock_mono_ns(clock_system()) - begin_ns;
    }
    p->examined.status = vigil_status_result(p->call);
}

static void ask_metrics(struct doctor *d, struct patient *p)
{
    vigil_error error;
    struct fetch *fetch = fetch_new(d->ctl, p->examined.endpoint, &error);
    if (!fetch || !fetch_run(fetch, &p->examined.metrics, &error))
        findings_add(&d->findings, FINDING_WARNING, "metrics",
                     "Disk, memory and watches cannot be examined without /metrics of the client's "
                     "address (the server may have another one: --listen-metrics-urls).",
                     "%s", error.text);
    fetch_free(fetch);
}

static int examine(struct doctor *d, struct patient *p, const char *endpoint)
{
    int exit = CTL_OK;
    p->examined.endpoint = endpoint;
    d->findings.where = endpoint;
    p->client = ctl_client_of(d->ctl, endpoint, &exit);
    if (!p->client)
        return exit;
    describe(d->ctl, &p->examined);
    ask_status(d, p);
    if (p->examined.status || p->runs)
        ask_metrics(d, p);
    if (!p->examined.status)
        explain_silence(d, p);
    check_server(&d->findings, &p->examined);
    return CTL_OK;
}

/* -- The cluster -- */

/* Some users may not ask for these. */
static void note_refusal(struct doctor *d, const char *what, vigil_call *call)
{
    d->findings.where = "cluster";
    findings_add(&d->findings, FINDING_WARNING, what, "Use a user with the role root.", "%s",
                 vigil_call_error(call)->text);
}

static void ask_cluster(struct doctor *d, const struct patient *answering)
{
    vigil_client *client = answering->client;
    vigil_call *members = vigil_member_list(client, 0), *alarms = vigil_alarm_list(client);
    if (vigil_call_run(members) == VIGIL_OK)
        check_members(&d->findings, &answering->examined, vigil_members_result(members));
    else
        note_refusal(d, "members", members);
    if (vigil_call_run(alarms) == VIGIL_OK)
        check_alarms(&d->findings, vigil_alarms_result(alarms));
    else
        note_refusal(d, "alarm", alarms);
    vigil_call_free(members);
    vigil_call_free(alarms);
}

static void examine_cluster(struct doctor *d)
{
    struct examined *servers = xcalloc(d->count + 1, sizeof(*servers));
    const struct patient *answering = NULL;
    for (size_t i = 0; i < d->count; i++) {
        servers[i] = d->patients[i].examined;
        if (servers[i].status && !answering)
            answering = &d->patients[i];
    }
    check_together(&d->findings, servers, d->count);
    if (answering)
        ask_cluster(d, answering);
    free(servers);
}

static int examine_all(struct doctor *d, const struct ctl_endpoints *endpoints)
{
    int exit = CTL_OK;
    d->count = size_min(endpoints->count, SERVERS_MAX);
    d->patients = xcalloc(d->count + 1, sizeof(*d->patients));
    for (size_t i = 0; i < d->count && exit == CTL_OK; i++)
        exit = examine(d, &d->patients[i], endpoints->texts[i]);
    if (exit == CTL_OK)
        examine_cluster(d);
    return exit;
}

int live_doctor(struct ctl *ctl)
{
    const struct doctor_flags *flags = ctl->flags;
    AUTO(doctor_fini) struct doctor d = {.ctl = ctl};
    struct ctl_endpoints endpoints = ctl_endpoints(ctl);
    int exit = flags->cluster ? ctl_member_endpoints(ctl, &endpoints) : CTL_OK;
    if (exit == CTL_OK)
        exit = examine_all(&d, &endpoints);
    if (exit != CTL_OK)
        return exit;
    if (ctl->globals.format == CTL_JSON || ctl->globals.format == CTL_JSONL)
        findings_write_json(&d.findings, ctl->out);
    else
        findings_write(&d.findings, ctl->out, terminal_has_colours(ctl->out, ctl->globals.colour));
    return findings_count(&d.findings, FINDING_BAD) > 0 ? CTL_ERROR : CTL_OK;
}
