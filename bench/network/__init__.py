"""What a benchmark over the network needs: servers, a light client, and ways to talk."""
