/* References of container images: "nginx", "example.com:5000/team/app:1.2@sha256:…". */
#ifndef VIGIL_KUBE_TYPES_DEFAULTS_IMAGE_H
#define VIGIL_KUBE_TYPES_DEFAULTS_IMAGE_H

#include "base/slice.h"

/*
 * Whether the image is that of the tag "latest", by its name or because a valid reference has
 * neither tag nor digest; such images are always pulled.
 */
bool image_is_latest(struct slice reference);

#endif
