/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * volume.h - the device or image of a mount: is it there, free, and GFS2?
 *
 * Opens it for one user and turns every refusal into a sentence for the person
 * who wants to mount. Nothing is written.
 */
#ifndef UG_DAEMON_VOLUME_H
#define UG_DAEMON_VOLUME_H

#include <stdbool.h>
#include <stddef.h>

#include "block/block.h"
#include "ondisk/codec.h"

struct volume {
	struct blkdev *dev;
	const char *source; /* borrowed */
	bool readonly;	    /* what was asked for */
	bool shared;	    /* with other members of a cluster */
	int claim;	    /* O_EXCL on a block device, or -1 */
	int image;	    /* lock on the image below a loop device, or < 0 */
};

/*
 * The superblock, before anything is opened to stay: who locks the volume
 * decides how a mount process begins. false if it cannot be read, or is none.
 */
bool volume_peek(const char *source, struct gfs2_sb_info *sb);

/*
 * Open source for a mount. shared: beside other mounts of this host that say
 * so too, and no others. readonly: open it so. A write-protected device is
 * opened for reading although readonly is false: dev->readonly tells.
 * 0, or a negative errno with a sentence in why.
 */
int volume_open(struct volume *vol, const char *source, bool readonly,
		bool shared, char *why, size_t why_len);

/*
 * A fuseblk mount claims the device in our place, which it cannot while we
 * do: unclaim before mount(2), and claim again if the mount did not become
 * fuseblk. -EBUSY (with a sentence): somebody else was faster.
 */
void volume_unclaim(struct volume *vol);
int volume_claim(struct volume *vol, char *why, size_t why_len);

/* After the file system has let go of it. Harmless if nothing is open. */
void volume_close(struct volume *vol);

/*
 * What source holds instead of GFS2, as words that continue a sentence
 * (holds "ext4"). false if it is GFS2 or nothing known.
 */
bool volume_foreign(const char *source, char *what, size_t what_len);

#endif
