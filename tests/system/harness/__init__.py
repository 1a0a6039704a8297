"""What all system tests share: clusters of real daemons, and what they may not leave behind."""
