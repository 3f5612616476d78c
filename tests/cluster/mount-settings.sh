#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What all members must have set alike is compared when one joins: it is told
# both values and who has the other one, and holds up nobody. cluster.conf counts,
# a mount option beats it, and what is wrong in it is named.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mount.sh"
: "${FPLOCKPERF:?}"

# seconds: what 200 files take on node 1, each locked and unlocked once
seconds() {
	"$lab" exec 1 "$FPLOCKPERF" -d "$m1" -n 200 -i 1 -t plock |
		sed -n 's/^total elapsed time=\([0-9.]*\) s$/\1/p'
}

# refused NODE WORDS [-o OPTIONS]
refused() {
	local i=$1 words=$2 status=0
	shift 2
	timeout 90 "$lab" mount "$i" "$@" > refusal 2>&1 || status=$?
	[ "$status" != 0 ] || fail "node $i has mounted: $*"
	[ "$status" != 124 ] || fail "node $i waits: $*"
	grep -qF "$words" refusal || fail "node $i: $(cat refusal)"
}

cat > owned.conf <<-EOF
	<cluster name="lab">
	  <gfs_controld plock_ownership="1"/>
	  <dlm plock_ownership="0" plock_rate_limit="100"/>
	</cluster>
EOF
sed 's/"100"/“100”/' owned.conf > quotes.conf

"$lab" up 3
volume=$("$lab" volume)
refused 1 "$work/quotes.conf:3: found '“' (U+201C), expected" \
	-o "clusterconf=$work/quotes.conf"
refused 1 "$work/absent.conf: No such file" -o "clusterconf=$work/absent.conf"

mount_options=clusterconf=$work/owned.conf mount_all 1
mount_options=plock_ownership=0 mount_all 2
writers 1 2
refused 3 "plock_ownership is 1 here, but 0 on the members"
grep -q "(node1, node2)\|(node2, node1)" refusal || fail "$(cat refusal)"
refused 3 "plock_ownership is 1 here, but 0 on the members" \
	-o "clusterconf=$work/owned.conf,plock_ownership=1"
go_on 30 1 2
mount_options=clusterconf=$work/owned.conf mount_all 3
stop_writers 1 2
intact "$m3"

# Half of the files are decided by node 2, so some 200 calls go there: a hundred
# at once, the others take a second at least.
same limit "$(on 1 gettune lab:volume plock_rate_limit)" "plock_rate_limit = 100"
limited=$(seconds)
awk "BEGIN { exit !($limited > 0.5) }" || fail "limited: $limited s"
on 1 settune lab:volume plock_rate_limit 0
same limit "$(on 1 gettune lab:volume plock_rate_limit)" "plock_rate_limit = 0"
free=$(seconds)
awk "BEGIN { exit !($free < $limited) }" || fail "$limited s, without limit $free"
on 1 settune lab:volume drop_resources_age 500
on 1 settune lab:volume plock_ownership 1 > refusal 2>&1 && fail "ownership changed"
grep -qF "plock_ownership cannot be changed while mounted" refusal ||
	fail "$(cat refusal)"
on 1 settune lab:volume plock_rate_limit -1 > refusal 2>&1 && fail "limit -1"
grep -qF "a number from 0 to 1000000 (per second)" refusal ||
	fail "$(cat refusal)"
umount_all 3

# Without fcntl locks there is flock.
mount_options=clusterconf=$work/owned.conf,enable_plock=0 mount_all 3
"$FPLOCKPERF" -d "$m3" -n 1 -i 1 -t plock > try 2>&1 && fail "an fcntl lock"
grep -qF "Function not implemented" try || fail "$(cat try)"
"$FPLOCKPERF" -d "$m3" -n 1 -i 1 -t flock || fail "no flock"
"$FPLOCKPERF" -d "$m1" -n 1 -i 1 -t plock || fail "no fcntl lock on node 1"
umount_all 1 2 3

# Nobody is left who has said so.
mount_all 3
refused 1 "plock_ownership is 0 here, but 1 on the members" \
	-o plock_ownership=0
umount_all 3
clean "$volume"
"$lab" down
