/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * loopdev.h - loop devices and the images that they show.
 *
 * Reads devices and /sys, keeps nothing.
 */
#ifndef UG_DAEMON_LOOPDEV_H
#define UG_DAEMON_LOOPDEV_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Has a file system or program claimed a loop device of this image? Its name,
 * without /dev, goes into name.
 */
bool loop_claimed_for(const char *image, char *name, size_t len);

/*
 * Is device a loop device that shows an image from its first byte on, and can
 * that be found here (it has a name in this mount name space)? Its path goes
 * into image.
 */
bool loop_image_of(const char *device, char *image, size_t len);

#endif
