#include "cmd/names/apiserver_ignored.h"

#include "base/macros.h"

#include <string.h>

#define NO_AUDIT "there is no audit log"
#define NO_OIDC "tokens of OpenID Connect are not accepted"
#define NO_TOKEN_HOOK "tokens are not verified by other programs"
#define NO_OTHER_AUTHORIZER "only the modes AlwaysAllow, Node and RBAC exist"

#define HARMLESS(flag) \
    {                  \
        .name = flag   \
    }
#define REFUSED(flag, reason)        \
    {                                \
        .name = flag, .why = reason, \
    }
#define REFUSED_UNLESS(flag, value, reason)         \
    {                                               \
        .name = flag, .why = reason, .same = value, \
    }

static const struct apiserver_ignored flags[] = {
    REFUSED("admission-control", "name plugins with --enable-admission-plugins"),
    HARMLESS("aggregator-reject-forwarding-redirect"),
    HARMLESS("allow-metric-labels"),
    HARMLESS("allow-metric-labels-manifest"),
    REFUSED_UNLESS("anonymous-auth", "true",
                   "requests without credentials are those of system:anonymous"),
    /* Details of an audit log, which the flags that ask for one refuse. */
    HARMLESS("audit-log-batch-buffer-size"),
    HARMLESS("audit-log-batch-max-size"),
    HARMLESS("audit-log-batch-max-wait"),
    HARMLESS("audit-log-batch-throttle-burst"),
    HARMLESS("audit-log-batch-throttle-enable"),
    HARMLESS("audit-log-batch-throttle-qps"),
    HARMLESS("audit-log-compress"),
    HARMLESS("audit-log-format"),
    HARMLESS("audit-log-maxage"),
    HARMLESS("audit-log-maxbackup"),
    HARMLESS("audit-log-maxsize"),
    HARMLESS("audit-log-mode"),
    REFUSED("audit-log-path", NO_AUDIT),
    HARMLESS("audit-log-truncate-enabled"),
    HARMLESS("audit-log-truncate-max-batch-size"),
    HARMLESS("audit-log-truncate-max-event-size"),
    HARMLESS("audit-log-version"),
    REFUSED("audit-policy-file", NO_AUDIT),
    HARMLESS("audit-webhook-batch-buffer-size"),
    HARMLESS("audit-webhook-batch-max-size"),
    HARMLESS("audit-webhook-batch-max-wait"),
    HARMLESS("audit-webhook-batch-throttle-burst"),
    HARMLESS("audit-webhook-batch-throttle-enable"),
    HARMLESS("audit-webhook-batch-throttle-qps"),
    REFUSED("audit-webhook-config-file", NO_AUDIT),
    HARMLESS("audit-webhook-initial-backoff"),
    HARMLESS("audit-webhook-mode"),
    HARMLESS("audit-webhook-truncate-enabled"),
    HARMLESS("audit-webhook-truncate-max-batch-size"),
    HARMLESS("audit-webhook-truncate-max-event-size"),
    HARMLESS("audit-webhook-version"),
    REFUSED("authentication-config", NO_OIDC),
    HARMLESS("authentication-token-webhook-cache-ttl"),
    REFUSED("authentication-token-webhook-config-file", NO_TOKEN_HOOK),
    HARMLESS("authentication-token-webhook-version"),
    REFUSED("authorization-config", NO_OTHER_AUTHORIZER),
    REFUSED("authorization-policy-file", NO_OTHER_AUTHORIZER),
    HARMLESS("authorization-webhook-cache-authorized-ttl"),
    HARMLESS("authorization-webhook-cache-unauthorized-ttl"),
    REFUSED("authorization-webhook-config-file", NO_OTHER_AUTHORIZER),
    HARMLESS("authorization-webhook-version"),
    HARMLESS("contention-profiling"),
    HARMLESS("coordinated-leadership-lease-duration"),
    HARMLESS("coordinated-leadership-renew-deadline"),
    HARMLESS("coordinated-leadership-retry-period"),
    HARMLESS("cors-allowed-origins"), /* pages of other origins are refused */
    HARMLESS("debug-socket-path"),
    HARMLESS("default-not-ready-toleration-seconds"),
    HARMLESS("default-unreachable-toleration-seconds"),
    HARMLESS("delete-collection-workers"),
    HARMLESS("disable-http2-serving"),
    HARMLESS("disabled-metrics"),
    HARMLESS("egress-selector-config-file"), /* only the etcd is connected to */
    HARMLESS("emulated-version"),
    HARMLESS("emulation-forward-compatible"),
    HARMLESS("enable-aggregator-routing"),
    HARMLESS("enable-bootstrap-token-auth"), /* such tokens get 401 */
    HARMLESS("enable-garbage-collector"),
    HARMLESS("enable-logs-handler"),
    HARMLESS("enable-priority-and-fairness"),
    REFUSED("encryption-provider-config", "objects are stored without encryption"),
    HARMLESS("encryption-provider-config-automatic-reload"),
    HARMLESS("endpoint-reconciler-type"),
    HARMLESS("etcd-count-metric-poll-period"),
    HARMLESS("etcd-db-metric-poll-interval"),
    HARMLESS("etcd-healthcheck-timeout"),
    HARMLESS("etcd-readycheck-timeout"),
    REFUSED("etcd-servers-overrides", "all resources are stored in the etcd of --etcd-servers"),
    HARMLESS("event-ttl"),
    HARMLESS("external-hostname"),
    HARMLESS("feature-gates"),
    HARMLESS("goaway-chance"),
    HARMLESS("kubelet-certificate-authority"), /* no kubelet is connected to */
    HARMLESS("kubelet-client-certificate"),
    HARMLESS("kubelet-client-key"),
    HARMLESS("kubelet-preferred-address-types"),
    HARMLESS("kubelet-timeout"),
    HARMLESS("kubernetes-service-node-port"),
    HARMLESS("lease-reuse-duration-seconds"),
    HARMLESS("livez-grace-period"),
    HARMLESS("log-flush-frequency"),
    HARMLESS("log-json-info-buffer-size"),
    HARMLESS("log-json-split-stream"),
    HARMLESS("log-text-info-buffer-size"),
    HARMLESS("log-text-split-stream"),
    HARMLESS("logging-format"),
    HARMLESS("max-connection-bytes-per-sec"),
    HARMLESS("max-mutating-requests-inflight"),
    HARMLESS("max-requests-inflight"),
    HARMLESS("min-compatibility-version"),
    HARMLESS("min-request-timeout"),
    REFUSED("oidc-ca-file", NO_OIDC),
    REFUSED("oidc-client-id", NO_OIDC),
    REFUSED("oidc-groups-claim", NO_OIDC),
    REFUSED("oidc-groups-prefix", NO_OIDC),
    REFUSED("oidc-issuer-url", NO_OIDC),
    REFUSED("oidc-required-claim", NO_OIDC),
    REFUSED("oidc-signing-algs", NO_OIDC),
    REFUSED("oidc-username-claim", NO_OIDC),
    REFUSED("oidc-username-prefix", NO_OIDC),
    HARMLESS("peer-advertise-ip"),
    HARMLESS("peer-advertise-port"),
    HARMLESS("peer-ca-file"),
    HARMLESS("permit-address-sharing"),
    HARMLESS("permit-port-sharing"),
    HARMLESS("profiling"),
    HARMLESS("proxy-client-cert-file"), /* there are no aggregated servers */
    HARMLESS("proxy-client-key-file"),
    HARMLESS("request-timeout"),
    HARMLESS("requestheader-allowed-names"), /* no proxy may name other users */
    HARMLESS("requestheader-client-ca-file"),
    HARMLESS("requestheader-extra-headers-prefix"),
    HARMLESS("requestheader-group-headers"),
    HARMLESS("requestheader-uid-headers"),
    HARMLESS("requestheader-username-headers"),
    HARMLESS("runtime-config"),
    HARMLESS("runtime-config-emulation-forward-compatible"),
    HARMLESS("service-account-extend-token-expiration"), /* no token is extended */
    HARMLESS("service-account-jwks-uri"),
    HARMLESS("service-account-lookup"), /* accounts are always looked up */
    REFUSED("service-account-max-token-expiration",
            "tokens of service accounts are valid as long as their requests ask for"),
    REFUSED("service-account-signing-endpoint",
            "tokens are signed with --service-account-signing-key-file alone"),
    HARMLESS("show-hidden-metrics-for-version"),
    HARMLESS("shutdown-delay-duration"),
    HARMLESS("shutdown-send-retry-after"),
    HARMLESS("shutdown-watch-termination-grace-period"),
    HARMLESS("storage-backend"),
    HARMLESS("storage-initialization-timeout"),
    HARMLESS("storage-media-type"),
    REFUSED("strict-transport-security-directives",
            "no Strict-Transport-Security field is sent to browsers"),
    REFUSED("tls-curve-preferences", "the curves of TLS cannot be chosen"),
    REFUSED("tls-sni-cert-key", "there is one certificate, that of --tls-cert-file"),
    HARMLESS("tracing-config-file"),
    HARMLESS("v"),
    HARMLESS("vmodule"),
    HARMLESS("watch-cache"),
    HARMLESS("watch-cache-sizes"),
};

const struct apiserver_ignored *apiserver_ignored_flag(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(flags); i++)
        if (strcmp(flags[i].name, name) == 0)
            return &flags[i];
    return NULL;
}

const struct apiserver_ignored *apiserver_ignored_at(size_t place)
{
    return place < COUNT_OF(flags) ? &flags[place] : NULL;
}
