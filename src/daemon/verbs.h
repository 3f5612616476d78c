/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * verbs.h - what the program can be asked to do.
 *
 * Each entry takes the arguments from the verb on (argv[0] is the verb, or the
 * name of the helper) and returns an exit code of exitcode.h.
 */
#ifndef UG_DAEMON_VERBS_H
#define UG_DAEMON_VERBS_H

int mount_main(int argc, char **argv);	       /* ugfs mount */
int mount_helper_main(int argc, char **argv);  /* mount.ugfs */
int umount_main(int argc, char **argv);	       /* ugfs umount */
int umount_helper_main(int argc, char **argv); /* umount.ugfs */
int dlm_main(int argc, char **argv);	       /* ugfs dlm */
/* mount_cmds.c: ugfs status and so on */
int status_main(int argc, char **argv);
int lockdump_main(int argc, char **argv);
int plocks_main(int argc, char **argv);
int gettune_main(int argc, char **argv);
int settune_main(int argc, char **argv);
int freeze_main(int argc, char **argv);
int unfreeze_main(int argc, char **argv);
int withdraw_main(int argc, char **argv);

/*
 * Go to the mount namespace that -N of mount(8) names: a process id or the
 * path of a namespace. 0, or -errno.
 */
int enter_mount_namespace(const char *name);

#endif
