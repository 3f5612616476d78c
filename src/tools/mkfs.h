/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mkfs.h - the verb "mkfs": make a GFS2 volume.
 */
#ifndef UG_TOOLS_MKFS_H
#define UG_TOOLS_MKFS_H

/*
 * argv[0] is the verb or the program's name. Returns the exit status: 0 done;
 * 1 refused, and nothing was written; 2 failed after writing had begun, so
 * that the device holds no volume. docs/man/ugfs-mkfs.8.
 */
int mkfs_main(int argc, char **argv);

#endif
