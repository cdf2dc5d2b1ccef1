/*
 * The file of --kube-admission-control-config-file: an AdmissionConfiguration, which names a
 * configuration for each of some plugins, in itself or in files of their own, whose paths are
 * relative to its directory. It is read once, when the server starts.
 *
 *     AdmissionConfiguration ─► PodSecurity ─► PodSecurityConfiguration ─► kube_admission_set
 *                            ─► ValidatingAdmissionWebhook ─► WebhookAdmissionConfiguration
 *
 * As in Kubernetes, the first entry of a plugin counts, and those of disabled plugins, and of names
 * that no plugin has, are not read. A configuration that would have no effect here is refused.
 */
#ifndef VIGIL_CMD_SERVE_CONFIG_ADMISSION_FILE_H
#define VIGIL_CMD_SERVE_CONFIG_ADMISSION_FILE_H

#include "base/error.h"
#include "base/memory/arena.h"
#include "kube/policy/admission/admission.h"
#include "kube/webhook/settings.h"

/* Completes the set, whose plugins are known, and the users of the settings of webhooks; what they
 * point to is in the arena. The error names the file and what is wrong in it. */
MUST_CHECK
enum status admission_file_read(const char *path, struct arena *arena,
                                struct kube_admission_set *set,
                                struct kube_webhook_settings *webhooks, struct error *error);

#endif
