/* The settings of the Kubernetes API that are made of several flags. */
#ifndef VIGIL_CMD_SERVE_CONFIG_CONFIG_KUBE_H
#define VIGIL_CMD_SERVE_CONFIG_CONFIG_KUBE_H

#include "base/memory/arena.h"
#include "cmd/serve/options/options.h"
#include "kube/jobs/start.h"
#include "kube/policy/admission/admission.h"
#include "kube/policy/reservations.h"
#include "kube/webhook/settings.h"
#include "net/url.h"

/* Where services get their addresses and node ports from. The result lives in the arena. */
MUST_CHECK
enum status config_kube_services(const struct serve_options *options, struct arena *arena,
                                 const struct kube_service_ranges **ret_ranges,
                                 struct error *error);
/* The admission plugins that are enabled, and how the server signs in at webhooks. The results live
 * in the arena. */
MUST_CHECK
enum status config_kube_admission(const struct serve_options *options, struct arena *arena,
                                  const struct kube_admission_set **ret_set,
                                  const struct kube_webhook_settings **ret_webhooks,
                                  struct error *error);
/* url is the first one of the API; NULL: it is not served over TCP. The result lives in the arena.
 * NULL: --kube-bootstrap is off. */
MUST_CHECK
enum status config_kube_start(const struct url *url, const struct serve_options *options,
                              struct arena *arena, const struct kube_start_settings **ret_start,
                              struct error *error);

#endif
