#!/bin/sh
# Makes one Redis Cluster, a replica behind each primary, of the nodes that are named as host:port, and returns when it serves.
# Run again it leaves the Cluster as it is, and tells the nodes where the others are now: containers come back with other addresses.
set -eu
first_host=${1%:*} first_port=${1#*:}
first() { redis-cli -e -h "$first_host" -p "$first_port" "$@"; }
nodes=
for node; do
  nodes="$nodes $(getent hosts "${node%:*}" | awk '{ print $1; exit }'):${node#*:}"
done
if first cluster info | grep -q cluster_slots_assigned:0; then
  # shellcheck disable=SC2086 # each is an argument of its own
  redis-cli --cluster create $nodes --cluster-replicas 1 --cluster-yes
else
  for node in $nodes; do
    first cluster meet "${node%:*}" "${node#*:}"
  done
fi
until first cluster info | grep -q cluster_state:ok; do sleep 1; done
